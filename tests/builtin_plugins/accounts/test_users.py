"""`/v1/auth/users`: how Platform Admins administer accounts, and what can't be done to the last of a kind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from typing import Any

import jwt
import pytest
import pytest_asyncio
from sqlalchemy import Select, select, update

from builtin_plugins.accounts.api import ACCOUNTS, OrganizationMembership
from builtin_plugins.accounts.platform_admins import PLATFORM_ADMINS
from kernel.auth.models import Account, AuditEntry
from kernel.sdk import Conflict, Plugin, Unit, hookimpl
from kernel.testing import Actor, Reply, Running, Start, audited, platforms
from tests.fakes.rows import execute

together = pytest.mark.asyncio(loop_scope="module")
USERS = "/v1/auth/users"
SECRET = "a secret of at least thirty-two bytes, for tests"


class Teams(Plugin):
    """Says who belongs to an organization, and forbids to deactivate an owner."""

    name = "teams"

    def __init__(self) -> None:
        self.members: dict[int, list[int]] = {}
        self.owner: int | None = None
        self.heard: list[tuple[str, int]] = []

    @hookimpl
    def select_members(self, organization_id: int) -> Select[tuple[int]]:
        return select(Account.id).where(Account.id.in_(self.members.get(organization_id, [])))

    @hookimpl
    async def find_memberships(self, account_ids: list[int]) -> dict[int, list[OrganizationMembership]]:
        memberships: dict[int, list[OrganizationMembership]] = {}
        for organization, members in self.members.items():
            for member in set(members) & set(account_ids):
                name = f"Org {organization}"
                record = OrganizationMembership(id=organization, name=name, slug="org", role="owner")
                memberships.setdefault(member, []).append(record)
        return memberships

    @hookimpl
    def on_account_event(self, unit: Unit, account: Account, change: str) -> None:
        self.heard.append((change, account.id))
        if change == "deactivated" and account.id == self.owner:
            raise Conflict("the last owner of an organization")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def teams() -> Teams:
    return Teams()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory, teams: Teams) -> AsyncIterator[Running]:
    """One platform for all tests that leave its administrators as they were."""
    async with platforms(tmp_path_factory.mktemp("users")) as start:
        yield await start(teams)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pat(shared: Running) -> Actor:
    """A Platform Admin who is an instance administrator, too."""
    return await platform_admin(shared, "pat")


async def platform_admin(running: Running, name: str, *, role: str = "admin") -> Actor:
    await running.platform.resource(ACCOUNTS).register(
        name, f"{name}@example.org", f"pw of {name}", role=role
    )
    await running.platform.resource(PLATFORM_ADMINS).grant(name)
    return await running.sign_in(name, f"pw of {name}")


def path_of(actor: Actor, what: str = "") -> str:
    return f"{USERS}/{actor.user['id']}{what}"


def without_epoch(actor: Actor) -> Actor:
    """The same person with a token as an earlier deployment would have minted it."""
    claims = jwt.decode(actor.token or "", SECRET, ["HS256"])
    del claims["epoch"]
    return replace(actor, token=jwt.encode(claims, SECRET, "HS256"))


async def change(running: Running, actor: Actor, **values: Any) -> None:
    """Change a row past every route, as an earlier release may have left it."""
    await execute(
        running.platform.database,
        update(Account).where(Account.id == actor.user["id"]).values(**values),
        tell=("account", str(actor.user["id"])),
    )


async def listed(pat: Actor, **query: Any) -> dict[str, Any]:
    answer = await pat.get(USERS, params={key: str(value) for key, value in query.items()})
    assert answer.status == 200, answer.body
    page: dict[str, Any] = answer.json()
    return page


def names(page: dict[str, Any]) -> list[str]:
    return [user["username"] for user in page["items"]]


async def last_entry(running: Running, action: str) -> AuditEntry:
    query = select(AuditEntry).where(AuditEntry.action == action).order_by(AuditEntry.id.desc()).limit(1)
    return await running.platform.database.read(lambda session: session.scalars(query).one())


@together
class TestAccess:
    async def test_the_flag_is_read_anew(self, shared: Running, pat: Actor) -> None:
        """Who is no Platform Admin any more is refused whatever the token says."""
        quinn = await platform_admin(shared, "quinn", role="user")
        assert (await quinn.get(USERS)).status == 200
        row = update(Account).where(Account.id == quinn.user["id"]).values(platform_admin=False)
        await execute(shared.platform.database, row)
        assert (await quinn.get(USERS)).status == 403


@together
class TestList:
    async def test_records(self, shared: Running, pat: Actor, teams: Teams) -> None:
        """The envelope of lists; each account with its organizations and without a password."""
        lea = await shared.user("lea")
        teams.members[7] = [lea.user["id"]]
        page = await listed(pat, q="lea")
        assert (page["total"], page["limit"], page["offset"]) == (1, 50, 0)
        user = page["items"][0]
        assert set(user) == {
            *("id", "username", "email", "role", "created_at", "is_active", "platform_admin"),
            *("must_change_password", "sso", "organizations"),
        }
        assert user["organizations"] == [{"id": 7, "name": "Org 7", "slug": "org", "role": "owner"}]
        assert (user["sso"], user["is_active"], user["platform_admin"]) == (False, True, False)

    async def test_pages(self, shared: Running, pat: Actor) -> None:
        """`limit` and `offset` cut the list, `total` counts it whole."""
        for number in range(3):
            await shared.platform.resource(ACCOUNTS).register(
                f"page-{number}", f"p{number}@x.org", "12345678"
            )
        page = await listed(pat, q="page-", limit=2, offset=1)
        assert (names(page), page["total"]) == (["page-1", "page-2"], 3)

    @pytest.mark.parametrize("query", ["limit=0", "limit=501", "offset=-1", "org_id=x", "role=root", "q="])
    async def test_bad_filters(self, pat: Actor, query: str) -> None:
        answer = await pat.get(f"{USERS}?{query}")
        assert (answer.status, answer.detail[0]["loc"]) == (422, ["query", query.partition("=")[0]])

    async def test_filters(self, shared: Running, pat: Actor, teams: Teams) -> None:
        """By part of the name or the address, role, state, flag, origin and organization, and together."""
        one, two, three = [await shared.user(f"f{number}_x") for number in range(3)]
        await shared.platform.resource(ACCOUNTS).register("fadmin_x", "f@x.org", "12345678", role="admin")
        await change(shared, one, is_active=False)
        await change(shared, two, sso_issuer="https://idp", sso_subject="2", password_hash=None)
        teams.members[8] = [one.user["id"], two.user["id"], three.user["id"]]
        everybody = ["f0_x", "f1_x", "f2_x", "fadmin_x"]
        assert names(await listed(pat, q="_X")) == everybody
        assert names(await listed(pat, q="F0_x@EXAMPLE")) == ["f0_x"]
        assert names(await listed(pat, q="%")) == []
        assert names(await listed(pat, q="_x", role="admin")) == ["fadmin_x"]
        assert names(await listed(pat, q="_x", is_active="false")) == ["f0_x"]
        assert names(await listed(pat, q="_x", sso="true")) == ["f1_x"]
        assert names(await listed(pat, q="_x", sso="false")) == ["f0_x", "f2_x", "fadmin_x"]
        assert names(await listed(pat, org_id=8)) == ["f0_x", "f1_x", "f2_x"]
        assert names(await listed(pat, org_id=8, is_active="true", limit=1)) == ["f1_x"]
        assert names(await listed(pat, platform_admin="true", q="pat")) == ["pat"]
        assert (await listed(pat, org_id=4711))["total"] == 0


async def test_without_organizations(start_platform: Start) -> None:
    """Where nobody knows organizations an account has none, and none has members."""
    running = await start_platform()
    pat = await platform_admin(running, "pat")
    assert (await listed(pat))["items"][0]["organizations"] == []
    assert (await listed(pat, org_id=1))["total"] == 0


@together
class TestRole:
    async def test_promotion(self, shared: Running, pat: Actor, teams: Teams) -> None:
        """A promotion ends no session and shows at the next refresh; the audit log and plugins have it."""
        uma = await shared.user("uma")
        answer = await pat.patch(path_of(uma, "/role"), json={"role": "admin"})
        assert (answer.status, answer.json()["role"]) == (200, "admin")
        fresh = (await uma.post("/v1/auth/refresh")).json()["access_token"]
        assert jwt.decode(fresh, options={"verify_signature": False})["role"] == "admin"
        assert ("promoted", uma.user["id"]) in teams.heard
        entry = await last_entry(shared, "account.role_changed")
        assert (entry.actor_id, entry.target_id) == (pat.user["id"], str(uma.user["id"]))
        assert (entry.before_state, entry.after_state) == ({"role": "user"}, {"role": "admin"})

    async def test_the_same_role(self, shared: Running, pat: Actor, teams: Teams) -> None:
        wes = await shared.user("wes", role="admin")
        assert (await pat.patch(path_of(wes, "/role"), json={"role": "admin"})).status == 200
        assert (await wes.get("/v1/auth/capabilities")).status == 200
        assert ("promoted", wes.user["id"]) not in teams.heard

    @pytest.mark.parametrize("user_id", ["999999", "2147483647"])
    @pytest.mark.parametrize(
        ("method", "what", "body"),
        [
            ("PATCH", "role", {"role": "user"}),
            ("PATCH", "status", {"is_active": True}),
            ("POST", "reset-password", {"mode": "generate"}),
        ],
    )
    async def test_unknown(self, pat: Actor, user_id: str, method: str, what: str, body: Any) -> None:
        answer = await pat.request(method, f"{USERS}/{user_id}/{what}", json=body)
        assert (answer.status, answer.json()["code"]) == (404, "not_found")


@together
class TestStatus:
    async def test_there_and_back(self, shared: Running, pat: Actor, teams: Teams) -> None:
        """Deactivated: no sign-in, refresh, request. Reactivated: a new sign-in, old tokens stay dead."""
        yan = await shared.user("yan")
        answer = await pat.patch(path_of(yan, "/status"), json={"is_active": False})
        assert (answer.status, answer.json()["is_active"]) == (200, False)
        body = {"username": "yan", "password": yan.password}
        assert (await shared.anonymous.post("/v1/auth/login", json=body)).status == 403
        assert (await yan.post("/v1/auth/refresh")).status == 401
        assert (await yan.get("/v1/auth/capabilities")).status == 401
        answer = await pat.patch(path_of(yan, "/status"), json={"is_active": True})
        assert (answer.status, answer.json()["is_active"]) == (200, True)
        assert (await yan.get("/v1/auth/capabilities")).status == 401
        assert (await yan.post("/v1/auth/refresh")).status == 401
        again = await shared.sign_in("yan", yan.password)
        assert (await again.get("/v1/auth/capabilities")).status == 200
        told = [change for change, account in teams.heard if account == yan.user["id"]]
        assert [change for change in told if "activated" in change] == ["deactivated", "activated"]
        entry = await last_entry(shared, "account.deactivated")
        assert (entry.before_state, entry.after_state) == ({"is_active": True}, {"is_active": False})

    async def test_a_plugin_forbids_it(self, shared: Running, pat: Actor, teams: Teams) -> None:
        """What a plugin forbids does not happen: account, sessions and audit log stay as they were."""
        zoe = await shared.user("zoe")
        teams.owner = zoe.user["id"]
        answer = await pat.patch(path_of(zoe, "/status"), json={"is_active": False})
        assert (answer.status, answer.detail) == (409, "the last owner of an organization")
        assert (await zoe.get("/v1/auth/capabilities")).status == 200
        assert await audited(shared, "account.deactivated", zoe.user["id"]) == []


@together
class TestResetPassword:
    async def test_generate(self, shared: Running, pat: Actor, teams: Teams) -> None:
        """A password is generated and shown once; sessions end; it must be changed at the next sign-in."""
        abe = await shared.user("abe")
        answer = await pat.post(path_of(abe, "/reset-password"), json={"mode": "generate"})
        assert (answer.status, set(answer.json())) == (200, {"temporary_password"})
        assert answer.headers["Cache-Control"] == "no-store"
        password = answer.json()["temporary_password"]
        assert len(password) >= 16
        assert (await abe.get("/v1/auth/capabilities")).status == 401
        again = await shared.sign_in("abe", password)
        assert again.user["must_change_password"] is True
        assert ("password_reset", abe.user["id"]) in teams.heard
        body = {"current_password": password, "new_password": "my very own one"}
        assert (await again.post("/v1/auth/change-password", json=body)).status == 200
        assert (await shared.sign_in("abe", "my very own one")).user["must_change_password"] is False

    async def test_it_stops_nothing(self, shared: Running, pat: Actor) -> None:
        """An account that must change its password can use other routes."""
        bea = await shared.user("bea")
        answer = await pat.post(path_of(bea, "/reset-password"), json={"mode": "generate"})
        again = await shared.sign_in("bea", answer.json()["temporary_password"])
        assert (await again.get("/v1/permissions")).status == 200

    async def test_set(self, shared: Running, pat: Actor) -> None:
        cal = await shared.user("cal")
        body = {"mode": "set", "new_password": "chosen for cal"}
        answer = await pat.post(path_of(cal, "/reset-password"), json=body)
        assert answer.json() == {"temporary_password": "chosen for cal"}
        await shared.sign_in("cal", "chosen for cal")

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({}, "mode"),
            ({"mode": "guess"}, "mode"),
            ({"mode": "set"}, "new_password"),
            ({"mode": "set", "new_password": None}, "new_password"),
            ({"mode": "set", "new_password": "7 chars"}, "new_password"),
        ],
    )
    async def test_a_bad_body(self, pat: Actor, body: Any, field: str) -> None:
        """422 names the field and does not repeat the password."""
        answer = await pat.post(f"{USERS}/1/reset-password", json=body)
        assert (answer.status, answer.detail[0]["loc"]) == (422, ["body", field])
        assert b"7 chars" not in answer.body

    async def test_sso(self, shared: Running, pat: Actor) -> None:
        dee = await shared.user("dee")
        await change(shared, dee, sso_issuer="https://idp", sso_subject="dee", password_hash=None)
        answer = await pat.post(path_of(dee, "/reset-password"), json={"mode": "generate"})
        assert (answer.status, answer.json()["code"]) == (409, "sso_account")
        own = {"current_password": "x", "new_password": "long enough"}
        assert (await dee.post("/v1/auth/change-password", json=own)).status == 409

    async def test_told_nowhere_else(
        self, shared: Running, pat: Actor, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The temporary password stands in the answer alone: not in the log, the audit log or the account."""
        eli = await shared.user("eli")
        with caplog.at_level(logging.DEBUG):
            answer = await pat.post(path_of(eli, "/reset-password"), json={"mode": "generate"})
        password = answer.json()["temporary_password"]
        entry = await last_entry(shared, "account.password_reset")
        assert (entry.target_id, entry.actor_id) == (str(eli.user["id"]), pat.user["id"])
        assert password not in caplog.text
        assert password not in f"{entry.before_state} {entry.after_state}"
        assert password.encode() not in (await pat.get(f"{USERS}?q=eli")).body


class TestLastOfAKind:
    """Of requests at the same moment that would each remove one of the last two, exactly one is refused."""

    @pytest_asyncio.fixture
    async def running(self, start_platform: Start, database_url: str | None) -> Running:
        return await start_platform(env={"DATABASE_URL": database_url, "JWT_SECRET": SECRET})

    async def race(self, *calls: Awaitable[Reply]) -> list[int]:
        return sorted(answer.status for answer in await asyncio.gather(*calls))

    async def test_administrators(self, running: Running) -> None:
        """Two administrators: demoted or deactivated at once, in every mixture, one stays."""
        pat = await platform_admin(running, "pat", role="user")
        await platform_admin(running, "pia", role="user")
        ada, bob = await running.user("ada", role="admin"), await running.user("bob", role="admin")
        demote, deactivate = ("/role", {"role": "user"}), ("/status", {"is_active": False})
        for first, second in [(demote, demote), (demote, deactivate), (deactivate, deactivate)]:
            calls = [
                pat.patch(path_of(who, what[0]), json=what[1]) for who, what in [(ada, first), (bob, second)]
            ]
            assert await self.race(*calls) == [200, 409]
            left = await listed(pat, role="admin", is_active="true")
            assert left["total"] == 1
            for who in (ada, bob):
                await change(running, who, role="admin", is_active=True)

    async def test_platform_admins(self, running: Running) -> None:
        """Two Platform Admins who deactivate each other at once: one stays, and so does the administrator."""
        await running.user("ada", role="admin")
        pat, pia = [await platform_admin(running, name, role="user") for name in ("pat", "pia")]
        await running.platform.resource(PLATFORM_ADMINS).revoke("ada")
        pat, pia = [
            await running.sign_in(a.user["username"], f"pw of {a.user['username']}") for a in (pat, pia)
        ]
        off = {"is_active": False}
        statuses = await self.race(
            pat.patch(path_of(pia, "/status"), json=off), pia.patch(path_of(pat, "/status"), json=off)
        )
        assert statuses[0] == 200 and statuses[1] in (401, 403, 409)
        query = select(Account).where(Account.platform_admin, Account.is_active)
        assert await running.platform.database.read(lambda session: len(session.scalars(query).all())) == 1

    async def test_resets_of_each_other(self, running: Running) -> None:
        """Two Platform Admins who reset each other's password at once: the one locked out changes nothing,
        not even with a token of an earlier deployment, which has no epoch.
        """
        pat, pia, kim, kit = [await platform_admin(running, name) for name in ("pat", "pia", "kim", "kit")]
        kim, kit = without_epoch(kim), without_epoch(kit)
        body = {"mode": "generate"}
        for one, other in [(pat, pia), (kim, kit)]:
            statuses = await self.race(
                one.post(path_of(other, "/reset-password"), json=body),
                other.post(path_of(one, "/reset-password"), json=body),
            )
            assert statuses == [200, 401]
