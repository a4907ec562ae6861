"""Who becomes Platform Admin, and who is one no longer (spec 5.7)."""

from __future__ import annotations

import asyncio
from typing import Any

import jwt
import pytest
from sqlalchemy import delete, update
from sqlalchemy.sql.dml import UpdateBase

from builtin_plugins.accounts.api import ACCOUNTS, ADMINISTRATION, ExternalIdentity, sign_in_external
from builtin_plugins.accounts.errors import AccountDisabled
from builtin_plugins.accounts.link_approvals import approve
from builtin_plugins.accounts.platform_admins import PLATFORM_ADMINS
from kernel.auth.models import Account
from kernel.errors import Conflict, NotFound
from kernel.sdk import Plugin, Unit, hookimpl, utc_now
from kernel.sdk.accounts import operator_of
from kernel.testing import Actor, Running, Start
from tests.fakes.audit import audited
from tests.fakes.earlier_release import PASSWORD
from tests.fakes.rows import execute


@pytest.fixture
async def running(start_platform: Start, database_url: str | None) -> Running:
    return await start_platform(env={"DATABASE_URL": database_url})


def claims_of(actor: Actor) -> dict[str, Any]:
    claims: dict[str, Any] = jwt.decode(actor.token or "", options={"verify_signature": False})
    return claims


async def may_administer(actor: Actor) -> int:
    return (await actor.get("/v1/auth/users")).status


class TestBootstrap:
    async def test_first_administrator_to_sign_in(self, running: Running) -> None:
        """The token of that very sign-in carries the claim, it opens what it should, and it is audited."""
        await running.user("ulla")
        ada, bea = await running.user("ada", role="admin"), await running.user("bea", role="admin")
        assert (claims_of(ada)["platform_admin"], await may_administer(ada)) == (True, 200)
        assert (claims_of(bea)["platform_admin"], await may_administer(bea)) == (False, 403)
        (entry,) = await audited(running.platform, "platform_admin.granted")
        assert (entry.target_id, entry.actor_id) == (str(ada.user["id"]), ada.user["id"])
        assert entry.before_state == {"username": "ada", "platform_admin": False}
        assert entry.after_state == {"username": "ada", "platform_admin": True, "way": "first sign-in"}
        assert entry.ip_address == "127.0.0.1"

    async def test_at_once(self, running: Running, start_platform: Start, database_url: str | None) -> None:
        """Of administrators who sign in at the same moment, to two processes, one becomes Platform Admin."""
        other = await start_platform(env={"DATABASE_URL": database_url})
        names = [f"admin-{number}" for number in range(4)]
        for name in names:
            await running.platform.resource(ACCOUNTS).register(
                name, f"{name}@example.org", PASSWORD, role="admin"
            )
        places = (running, other, running, other)
        signing_in = (place.sign_in(name, PASSWORD) for place, name in zip(places, names, strict=True))
        actors = await asyncio.gather(*signing_in)
        assert [claims_of(actor)["platform_admin"] for actor in actors].count(True) == 1
        assert len(await running.platform.resource(PLATFORM_ADMINS).list()) == 1
        assert len(await audited(running.platform, "platform_admin.granted")) == 1

    async def test_linked_account(self, running: Running) -> None:
        """An account that was local before its link is passed over, and the next one is not."""
        await running.platform.resource(ACCOUNTS).register("ada", "ada@example.org", PASSWORD, role="admin")
        await execute(running.platform.database, update(Account).values(linked_at=utc_now()))
        assert claims_of(await running.sign_in("ada", PASSWORD))["platform_admin"] is False
        assert claims_of(await running.user("bea", role="admin"))["platform_admin"] is True

    @pytest.mark.parametrize(
        "change",
        [
            update(Account).values(epoch=Account.epoch + 1),
            update(Account).values(is_active=False),
            update(Account).values(role="user"),
            delete(Account),
        ],
        ids=["signed out everywhere", "deactivated", "demoted", "deleted"],
    )
    async def test_changed_since_the_password_was_checked(self, running: Running, change: UpdateBase) -> None:
        database, admins = running.platform.database, running.platform.resource(PLATFORM_ADMINS)
        accounts = running.platform.resource(ACCOUNTS)
        ada = await accounts.register("ada", "ada@example.org", PASSWORD, role="admin")
        await execute(database, change)
        await database.write(admins.bootstrap, ada)
        assert (await admins.list(), ada.platform_admin) == ([], False)
        assert await audited(running.platform, "platform_admin.granted") == []

    async def test_sign_in_that_is_refused(self, start_platform: Start) -> None:
        """When a plugin forbids the sign-in, nothing is granted with it."""
        running = await start_platform(Doorman)
        await running.platform.resource(ACCOUNTS).register("ada", "ada@example.org", PASSWORD, role="admin")
        body = {"username": "ada", "password": PASSWORD}
        assert (await running.anonymous.post("/v1/auth/login", json=body)).status == 409
        assert await running.platform.resource(PLATFORM_ADMINS).list() == []
        assert await audited(running.platform, "platform_admin.granted") == []


class Doorman(Plugin):
    """Lets nobody in, and ben never be Platform Admin."""

    name = "doorman"
    version = "1"

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    @hookimpl
    def on_account_event(self, unit: Unit, account: Account, change: str) -> None:
        if change == "signed_in" and account.username == "ada":
            raise Conflict("nobody comes in")
        if change == "platform_admin_granted" and account.username == "ben":
            raise Conflict("not ben")
        self.heard.append((account.username, change))


class TestOperator:
    async def test_grant(self, running: Running) -> None:
        """It counts on routes at once, and shows in the token that the next refresh gives."""
        ulla = await running.user("ulla")
        assert await may_administer(ulla) == 403
        account, changed = await running.platform.resource(PLATFORM_ADMINS).grant("ULLA")
        assert (account.username, changed) == ("ulla", True)
        fresh = (await ulla.post("/v1/auth/refresh")).json()["access_token"]
        assert claims_of(Actor(running, fresh))["platform_admin"] is True
        assert await may_administer(Actor(running, fresh)) == 200

    async def test_nothing_changes(self, running: Running) -> None:
        """A grant to a holder and a revocation from somebody else write nothing and end no session."""
        ada, ulla = await running.user("ada", role="admin"), await running.user("ulla")
        admins = running.platform.resource(PLATFORM_ADMINS)
        before = len(await audited(running.platform))
        assert (await admins.grant("ada"))[1] is False
        assert (await admins.revoke("ulla"))[1] is False
        assert len(await audited(running.platform)) == before
        assert (await may_administer(ada), (await ulla.get("/v1/auth/capabilities")).status) == (200, 200)

    async def test_at_once(self, running: Running) -> None:
        """Of grants at the same moment one changes something, and one is audited."""
        await running.user("ulla")
        grants = await asyncio.gather(
            *(running.platform.resource(PLATFORM_ADMINS).grant("ulla") for _ in range(4))
        )
        assert [changed for _, changed in grants].count(True) == 1
        assert len(await audited(running.platform, "platform_admin.granted")) == 1

    async def test_whom_it_refuses(self, running: Running) -> None:
        """An account that does not exist, and one that is deactivated."""
        ulla = await running.user("ulla")
        await running.platform.resource(ADMINISTRATION).set_active(
            operator_of(running.platform), ulla.user["id"], False
        )
        with pytest.raises(AccountDisabled):
            await running.platform.resource(PLATFORM_ADMINS).grant("ulla")
        for change in (
            running.platform.resource(PLATFORM_ADMINS).grant,
            running.platform.resource(PLATFORM_ADMINS).revoke,
        ):
            with pytest.raises(NotFound):
                await change("nobody")


async def test_plugins_hear_and_may_forbid(start_platform: Start) -> None:
    """`on_account_event` reports both changes in their transaction; a veto leaves nothing behind."""
    doorman = Doorman()
    running = await start_platform(doorman)
    for name in ("bob", "ben"):
        await running.platform.resource(ACCOUNTS).register(name, f"{name}@example.org", PASSWORD)
    await running.platform.resource(PLATFORM_ADMINS).grant("bob")
    await running.platform.resource(PLATFORM_ADMINS).revoke("bob")
    assert doorman.heard[-2:] == [("bob", "platform_admin_granted"), ("bob", "platform_admin_revoked")]
    with pytest.raises(Conflict, match="not ben"):
        await running.platform.resource(PLATFORM_ADMINS).grant("ben")
    assert await running.platform.resource(PLATFORM_ADMINS).list() == []
    assert [entry.target_id for entry in await audited(running.platform, "platform_admin.granted")] == ["1"]


async def test_first_administrator_of_the_identity_provider(start_platform: Start) -> None:
    """An account that the provider made becomes the first one as a local one does; a linked one does not."""
    running = await start_platform()
    await running.platform.resource(ACCOUNTS).register("ada", "ada@example.org", PASSWORD, role="admin")
    await approve(running.platform, "ada", {})
    for subject, name, expected in (("1", "ada", False), ("2", "bea", True), ("3", "cleo", False)):
        identity = ExternalIdentity(
            "https://id.example.org", subject, name, f"{name}@id.example.org", "admin"
        )
        account, token = await sign_in_external(running.platform, identity, {})
        assert (account.username, account.role) == (name, "admin")
        assert claims_of(Actor(running, token))["platform_admin"] is expected
