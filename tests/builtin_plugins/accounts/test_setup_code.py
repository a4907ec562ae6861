"""Setup codes: how an upgraded install gets its first Platform Admin (spec 3.6, 7)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, update

from builtin_plugins.accounts.api import ADMINISTRATION
from builtin_plugins.accounts.platform_admins import PLATFORM_ADMINS
from builtin_plugins.accounts.setup_codes import SETUP_CODES, WRONG_CODES, SetupCodesClosed
from kernel.auth.models import SetupCode
from kernel.db.base import utc_now
from kernel.sdk.accounts import operator_of
from kernel.testing import Actor, Reply, Running, Start
from tests.fakes.audit import audited
from tests.fakes.earlier_release import PASSWORD, make_earlier_release
from tests.fakes.own_clock import OwnClock
from tests.fakes.rows import execute
from tests.fakes.waiting import room_in_the_minute

CLAIM = "/v1/auth/platform-admin/claim"
WRONG = "AAAAAA-BBBBBB-CCCCCC"


class Upgraded:
    """An upgraded install with three administrators (ada, bea, cleo) and a user (ulla)."""

    def __init__(self, running: Running) -> None:
        self.running = running

    async def sign_in(self, name: str) -> Actor:
        return await self.running.sign_in(name, PASSWORD)

    async def issue(self) -> str:
        return (await self.running.platform.resource(SETUP_CODES).issue())[0]

    async def refusals(self) -> list[str]:
        entries = await audited(self.running.platform, "platform_admin.claim_refused")
        return [entry.after_state["reason"] for entry in entries]


Boot = Callable[..., Awaitable[Upgraded]]


@pytest.fixture
async def boot(start_platform: Start, platform_home: Path) -> Boot:
    return await upgraded_boot(start_platform, platform_home, None)


@pytest.fixture
async def each_boot(start_platform: Start, platform_home: Path, database_url: str | None) -> Boot:
    """The same on each database, where locks or the SQL of a change are at stake."""
    return await upgraded_boot(start_platform, platform_home, database_url)


async def upgraded_boot(start_platform: Start, platform_home: Path, database_url: str | None) -> Boot:
    await make_earlier_release(
        platform_home, database_url, ada="admin", bea="admin", cleo="admin", ulla="user"
    )

    async def start(**env: str) -> Upgraded:
        return Upgraded(await start_platform(env={"DATABASE_URL": database_url, **env}))

    return start


@pytest.fixture
async def upgraded(boot: Boot) -> Upgraded:
    return await boot()


@pytest.fixture
async def each_upgraded(each_boot: Boot) -> Upgraded:
    return await each_boot()


async def claim(actor: Actor, code: str) -> Reply:
    return await actor.post(CLAIM, json={"code": code})


def outcome(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.json()["code"]


class TestClaim:
    async def test_whole_way(self, each_upgraded: Upgraded) -> None:
        """Issue, ask, claim, refresh: the claimant administers users, and the mode is closed for good."""
        code = await each_upgraded.issue()
        assert re.fullmatch(r"[0-9A-Z]{6}(-[0-9A-Z]{6}){2}", code)
        ada, bea = await each_upgraded.sign_in("ada"), await each_upgraded.sign_in("bea")
        assert (await ada.get(CLAIM)).json() == {"setup_code_required": True}
        granted = await claim(ada, code)
        assert (granted.status, granted.json()) == (200, {"granted": True, "refresh_required": True})
        fresh = (await ada.post("/v1/auth/refresh")).json()["access_token"]
        assert (await Actor(each_upgraded.running, fresh).get("/v1/auth/users")).status == 200
        (entry,) = await audited(each_upgraded.running.platform, "platform_admin.granted")
        assert (entry.actor_id, entry.after_state["way"]) == (ada.user["id"], "setup code")
        assert outcome(await claim(ada, code)) == (409, "already_platform_admin")
        assert outcome(await claim(bea, code)) == (404, "no_setup_code")
        assert ((await ada.get(CLAIM)).status, (await bea.get(CLAIM)).status) == (404, 404)
        with pytest.raises(SetupCodesClosed, match="platform-admin grant"):
            await each_upgraded.issue()

    async def test_spelling(self, upgraded: Upgraded) -> None:
        """Small letters, missing dashes and stray spaces make no difference."""
        code = await upgraded.issue()
        ada = await upgraded.sign_in("ada")
        assert (await claim(ada, f" {code.lower().replace('-', ' ')}\t")).status == 200

    async def test_what_is_no_code(self, upgraded: Upgraded) -> None:
        """Another form is a bad body that names the field; it is no attempt."""
        await upgraded.issue()
        ada = await upgraded.sign_in("ada")
        unfit = ("", "AAAAAA", "AAAAAA-BBBBBB-CCCCC", "ÄÄÄÄÄÄ-BBBBBB-CCCCCC", "ß" * 9, "A" * 999, 7, None)
        for code in unfit:
            refused = await ada.post(CLAIM, json={"code": code})
            assert (refused.status, refused.detail[0]["loc"]) == (422, ["body", "code"]), code
        assert await upgraded.refusals() == []

    async def test_who_may_not(self, upgraded: Upgraded) -> None:
        """Anonymous 401; no administrator 403, audited; one who was demoted a moment ago as well."""
        code = await upgraded.issue()
        ulla, bea = await upgraded.sign_in("ulla"), await upgraded.sign_in("bea")
        assert (await claim(upgraded.running.anonymous, code)).status == 401
        assert (await upgraded.running.anonymous.get(CLAIM)).status == 401
        assert outcome(await claim(ulla, code)) == (403, "not_administrator")
        assert (await ulla.get(CLAIM)).status == 403
        await upgraded.running.platform.resource(ADMINISTRATION).set_role(
            operator_of(upgraded.running.platform), bea.user["id"], "user"
        )
        bea = await upgraded.sign_in("bea")
        assert outcome(await claim(bea, code)) == (403, "not_administrator")
        assert await upgraded.refusals() == ["not_administrator"] * 2

    async def test_expired(self, each_upgraded: Upgraded) -> None:
        _, expires_at = await each_upgraded.running.platform.resource(SETUP_CODES).issue()
        assert timedelta(hours=23, minutes=59) < expires_at - utc_now() <= timedelta(hours=24)
        code = await each_upgraded.issue()
        await execute(each_upgraded.running.platform.database, update(SetupCode).values(expires_at=utc_now()))
        ada = await each_upgraded.sign_in("ada")
        assert outcome(await claim(ada, code)) == (403, "expired_code")

    async def test_only_the_hash_is_kept(self, upgraded: Upgraded) -> None:
        code = await upgraded.issue()
        ada = await upgraded.sign_in("ada")
        await claim(ada, WRONG)
        row = await upgraded.running.platform.database.read(
            lambda session: session.scalars(select(SetupCode)).one()
        )
        kept = str(vars(row)) + "".join(
            str(vars(entry)) for entry in await audited(upgraded.running.platform)
        )
        for part in (code, code.replace("-", ""), *code.split("-"), WRONG):
            assert part.lower() not in kept.lower()


class TestGuessing:
    async def test_too_many(self, upgraded: Upgraded) -> None:
        """After five wrong codes the right one is refused too; another account and another code are not."""
        code = await upgraded.issue()
        ada, bea = await upgraded.sign_in("ada"), await upgraded.sign_in("bea")
        for _ in range(WRONG_CODES):
            assert outcome(await claim(ada, WRONG)) == (403, "wrong_code")
        assert outcome(await claim(ada, code)) == (403, "too_many_wrong_codes")
        assert outcome(await claim(bea, WRONG)) == (403, "wrong_code")
        assert await upgraded.refusals() == ["wrong_code"] * 5 + ["too_many_wrong_codes", "wrong_code"]
        assert (await claim(ada, await upgraded.issue())).status == 200

    async def test_in_parallel(self, each_upgraded: Upgraded) -> None:
        code = await each_upgraded.issue()
        ada = await each_upgraded.sign_in("ada")
        found = [outcome(reply) for reply in await asyncio.gather(*(claim(ada, WRONG) for _ in range(12)))]
        assert found.count((403, "wrong_code")) == WRONG_CODES
        assert found.count((403, "too_many_wrong_codes")) == 12 - WRONG_CODES
        assert outcome(await claim(ada, code)) == (403, "too_many_wrong_codes")

    async def test_in_two_processes(self, each_boot: Boot) -> None:
        """The count is the database's: it holds across processes, and across a restart."""
        secret = {"JWT_SECRET": "a secret of at least thirty-two bytes, for tests"}
        here = await each_boot(**secret)
        code = await here.issue()
        ada = await here.sign_in("ada")
        for _ in range(WRONG_CODES):
            await claim(ada, WRONG)
        there = await each_boot(**secret)
        assert outcome(await claim(Actor(there.running, ada.token), code)) == (403, "too_many_wrong_codes")

    async def test_one_wins(self, each_upgraded: Upgraded, each_boot: Boot) -> None:
        """Of administrators who claim at the same moment, of two processes, one is granted."""
        code = await each_upgraded.issue()
        other = await each_boot()
        places = zip((each_upgraded, other, each_upgraded), ("ada", "bea", "cleo"), strict=True)
        actors = [await place.sign_in(name) for place, name in places]
        found = sorted(reply.status for reply in await asyncio.gather(*(claim(a, code) for a in actors)))
        assert found == [200, 404, 404]
        assert len(await each_upgraded.running.platform.resource(PLATFORM_ADMINS).list()) == 1

    async def test_one_wins_against_a_grant(self, each_upgraded: Upgraded) -> None:
        """A grant and a claim at the same moment: the claim comes first or is refused, never half done."""
        code = await each_upgraded.issue()
        ada = await each_upgraded.sign_in("ada")
        reply, _ = await asyncio.gather(
            claim(ada, code), each_upgraded.running.platform.resource(PLATFORM_ADMINS).grant("bea")
        )
        names = {
            account.username
            for account in await each_upgraded.running.platform.resource(PLATFORM_ADMINS).list()
        }
        assert (reply.status, names) in [(200, {"ada", "bea"}), (404, {"bea"})]


async def test_attempts_are_limited_by_address_and_account(boot: Boot) -> None:
    """Past ten claims in a minute the answer is 429, whatever the code."""
    upgraded = await boot(RATE_LIMIT_ENABLED="true", RATE_LIMIT_PER_MINUTE="1000")
    code = await upgraded.issue()
    ada, bea = await upgraded.sign_in("ada"), await upgraded.sign_in("bea")
    await room_in_the_minute(15)
    for _ in range(10):
        assert (await claim(ada, WRONG)).status == 403
    limited = await claim(ada, code)
    assert (limited.status, "Retry-After" in limited.headers) == (429, True)
    assert (await claim(bea, code)).status == 429  # the same address


async def test_account_is_limited_from_any_address(boot: Boot) -> None:
    """Changing the address does not give an account more attempts."""
    proxy = {"RATE_LIMIT_ENABLED": "true", "RATE_LIMIT_PER_MINUTE": "1000"}
    upgraded = await boot(**proxy, TRUSTED_PROXY_CIDRS="127.0.0.1/32")
    await upgraded.issue()
    ada = await upgraded.sign_in("ada")
    await room_in_the_minute(15)
    found = []
    for number in range(12):
        headers = {"X-Forwarded-For": f"203.0.113.{number}"}
        found.append((await ada.post(CLAIM, json={"code": WRONG}, headers=headers)).status)
    assert found == [403] * 10 + [429] * 2


async def test_after_the_only_platform_admin(start_platform: Start) -> None:
    """Where the bootstrapped one is one no longer, an administrator may claim, once and for good."""
    running = await start_platform()
    platform = running.platform
    ada, bea = await running.user("ada", role="admin"), await running.user("bea", role="admin")
    with pytest.raises(SetupCodesClosed):
        await platform.resource(SETUP_CODES).issue()
    await platform.resource(PLATFORM_ADMINS).revoke("ada")
    code, _ = await platform.resource(SETUP_CODES).issue()
    assert (await bea.get(CLAIM)).json() == {"setup_code_required": True}
    assert (await claim(bea, code)).status == 200
    ada = await running.sign_in("ada", ada.password)
    await platform.resource(PLATFORM_ADMINS).revoke("bea")
    assert ((await ada.get(CLAIM)).status, outcome(await claim(ada, code))) == (404, (404, "no_setup_code"))
    with pytest.raises(SetupCodesClosed):
        await platform.resource(SETUP_CODES).issue()


async def test_fresh_install_needs_none(start_platform: Start) -> None:
    """Where signing in makes the first Platform Admin, no code is issued and none can be claimed."""
    running = await start_platform()
    with pytest.raises(SetupCodesClosed, match="new installation"):
        await running.platform.resource(SETUP_CODES).issue()
    await running.user("ada", role="admin")
    bea = await running.user("bea", role="admin")
    assert ((await bea.get(CLAIM)).status, outcome(await claim(bea, WRONG))) == (404, (404, "no_setup_code"))


async def test_by_the_clock_of_the_database(
    start_platform: Start, platform_home: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A code issued on a machine whose clock is two days behind lasts a day all the same."""
    boot, clock = await upgraded_boot(start_platform, platform_home, postgres_url), OwnClock(monkeypatch)
    installed = await boot()
    clock.by(-2 * 86_400)
    code = await installed.issue()
    clock.by(0)
    answer = await (await installed.sign_in("ada")).post(CLAIM, json={"code": code})
    assert answer.status == 200, answer.body
