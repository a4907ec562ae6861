"""An identity comes in: accounts found, linked or made, and brought up to date (spec 3.5, 5.5)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import jwt
import pytest
from sqlalchemy import select

from kernel.auth.errors import AccountDisabled
from kernel.auth.link_approvals import approve
from kernel.auth.models import Account, AuditEntry, LinkApproval
from kernel.sdk import (
    Conflict,
    ExternalIdentity,
    Plugin,
    SignInMethod,
    Unit,
    end_external_sessions,
    hookimpl,
    sign_in_external,
)
from kernel.testing import Actor, Running, Start

ANNA = ExternalIdentity("https://idp.example.net", "s-1", "anna", "anna@corp.example", "user")
ORIGIN = {"ip_address": "192.0.2.7"}


async def enter(running: Running, identity: ExternalIdentity) -> tuple[Account, Actor]:
    """Sign in; the account and its session."""
    account, token = await sign_in_external(running.platform, identity, ORIGIN)
    return account, Actor(running, token)


async def accounts(running: Running) -> dict[str, Account]:
    """All accounts by name."""
    rows, _ = await running.platform.accounts.list()
    return {row.username: row for row in rows}


async def audited(running: Running, action: str) -> list[AuditEntry]:
    """What the log has of an action."""
    async with running.platform.database.read() as session:
        query = select(AuditEntry).where(AuditEntry.action == action).order_by(AuditEntry.id)
        return list(await session.scalars(query))


async def is_accepted(session: Actor) -> bool:
    """Whether a session still opens a door that any session opens."""
    return (await session.post("/v1/auth/refresh")).status == 200


async def test_first_sign_in_makes_an_account(start_platform: Start, database_url: str | None) -> None:
    """With the provider's name, address and role, and without a password; the token is a session."""
    running = await start_platform(env={"DATABASE_URL": database_url})
    account, session = await enter(running, ANNA)
    assert (account.username, account.email, account.role) == ("anna", "anna@corp.example", "user")
    assert account.password_hash is None
    assert account.linked_at is None
    assert await is_accepted(session)
    (entry,) = await audited(running, "account.created")
    assert entry.ip_address == "192.0.2.7"
    assert entry.after_state["issuer"] == ANNA.issuer


async def test_second_sign_in_finds_it(start_platform: Start, database_url: str | None) -> None:
    """By issuer and subject, whatever else changed; the same subject of another issuer is somebody else."""
    running = await start_platform(env={"DATABASE_URL": database_url})
    first, _ = await enter(running, ANNA)
    moved = replace(ANNA, username="anna.b", email="b@corp.example")
    second, _ = await enter(running, moved)
    assert second.id == first.id
    assert (second.username, second.email) == ("anna.b", "b@corp.example")
    assert len(await audited(running, "account.synced")) == 1
    other, _ = await enter(running, replace(ANNA, issuer="https://other.example.net"))
    assert other.id != first.id


async def test_what_the_provider_does_not_say_stays(start_platform: Start) -> None:
    """An existing account keeps name, address and role; nothing is written, nothing audited."""
    running = await start_platform()
    await enter(running, replace(ANNA, role="admin"))
    account, _ = await enter(running, ExternalIdentity(ANNA.issuer, ANNA.subject))
    assert (account.username, account.email, account.role) == ("anna", "anna@corp.example", "admin")
    assert await audited(running, "account.synced") == []


@pytest.mark.parametrize(
    ("subject", "username", "expected_name", "expected_email"),
    [
        ("s-1", None, "s-1", "s-1@idp.example.net"),
        ("auth0|9 f", "Jürgen Groß", "Jurgen-Gro", None),
        ("s-1", "anna@corp.example", "anna-corp.example", "s-1@idp.example.net"),
        ("s-1", "x" * 80, "x" * 50, "s-1@idp.example.net"),
        ("***", "***", "user", None),
        ("s-1", "Robert'); DROP TABLE", "Robert-DROP-TABLE", "s-1@idp.example.net"),
    ],
)
async def test_names_are_made_to_fit(
    start_platform: Start, subject: str, username: str | None, expected_name: str, expected_email: str | None
) -> None:
    """Any name becomes one of our pattern; without an address there is one at the provider's host."""
    running = await start_platform()
    account, _ = await enter(running, ExternalIdentity(ANNA.issuer, subject, username))
    assert account.username == expected_name
    assert account.role == "user"
    if expected_email is not None:
        assert account.email == expected_email
    assert account.email.endswith("@idp.example.net")
    assert set(account.email) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.@")


class TestCollisions:
    async def test_local_name_is_never_taken(self, start_platform: Start, database_url: str | None) -> None:
        """Without an approval: an account of its own with a dash and 8 characters; refusal audited."""
        running = await start_platform(env={"DATABASE_URL": database_url})
        local = await running.user("Anna", role="admin")
        account, _ = await enter(running, ANNA)
        assert account.id != local.user["id"]
        name, _, suffix = account.username.rpartition("-")
        assert (name, len(suffix)) == ("anna", 8)
        assert account.role == "user"
        assert await is_accepted(local)
        assert (await running.sign_in("Anna", local.password)).user["role"] == "admin"
        (entry,) = await audited(running, "sso_link.refused")
        assert entry.target_id == str(local.user["id"])
        assert entry.after_state["subject"] == "s-1"

    async def test_suffix_stays(self, start_platform: Start) -> None:
        """The next sign-in finds the same account, keeps its name, and is no refusal."""
        running = await start_platform()
        await running.user("anna")
        first, _ = await enter(running, ANNA)
        second, _ = await enter(running, ANNA)
        assert (second.id, second.username) == (first.id, first.username)
        assert len(await audited(running, "sso_link.refused")) == 1

    async def test_suffix_that_is_taken_too(self, start_platform: Start, platform_home: Any) -> None:
        """Who registers the foreseeable name gains nothing, and the other name stays the same then."""
        running = await start_platform()
        foreseen, _ = await enter(await start_platform(home=platform_home / "other"), ANNA)
        assert foreseen.username == "anna"
        await running.user("anna")
        elsewhere = await start_platform(home=platform_home / "third")
        await elsewhere.user("anna")
        suffixed, _ = await enter(elsewhere, ANNA)
        await running.user(suffixed.username)
        first, _ = await enter(running, ANNA)
        second, _ = await enter(running, ANNA)
        assert first.username == second.username
        assert first.username not in ("anna", suffixed.username)

    async def test_address_is_never_taken(self, start_platform: Start, database_url: str | None) -> None:
        """The address of another account links nothing: the new one gets one at the provider's host."""
        running = await start_platform(env={"DATABASE_URL": database_url})
        local = await running.user("bob")
        account, _ = await enter(running, replace(ANNA, email="BOB@example.org"))
        assert account.id != local.user["id"]
        assert account.email == "s-1@idp.example.net"
        assert (await accounts(running))["bob"].email == "bob@example.org"
        (entry,) = [e for e in await audited(running, "account.created") if e.target_id == str(account.id)]
        assert entry.after_state["email"] == "taken by another account"

    async def test_names_of_two_identities(self, start_platform: Start) -> None:
        """Two people whom two providers call the same are two accounts, at every sign-in."""
        running = await start_platform()
        other = replace(ANNA, issuer="https://other.example.net", email=None)
        for _ in range(2):
            first, _ = await enter(running, ANNA)
            second, _ = await enter(running, other)
            assert first.id != second.id
            assert (first.username, second.username[:5]) == ("anna", "anna-")
        assert len(await accounts(running)) == 2


class TestLink:
    async def test_approved_account_is_taken(self, start_platform: Start, database_url: str | None) -> None:
        """Approval consumed, password and sessions gone, flag cleared, role and address the provider's."""
        running = await start_platform(env={"DATABASE_URL": database_url})
        local = await running.user("anna", role="admin")
        boss = await running.user("boss", role="admin")
        await running.platform.platform_admins.grant("anna")
        await approve(running.platform, "anna", {})
        account, session = await enter(running, ANNA)
        assert account.id == local.user["id"]
        assert (account.role, account.email, account.platform_admin) == ("user", "anna@corp.example", False)
        assert account.linked_at is not None
        assert not await is_accepted(local)
        assert await is_accepted(session)
        assert await is_accepted(boss)
        body = {"username": "anna", "password": local.password}
        assert (await running.anonymous.post("/v1/auth/login", json=body)).status == 401
        async with running.platform.database.read() as reading:
            assert (await reading.scalars(select(LinkApproval))).all() == []
        (entry,) = await audited(running, "sso_link.completed")
        assert entry.before_state["role"] == "admin"
        assert entry.before_state["platform_admin"] is True
        assert "password" not in str((entry.before_state, entry.after_state))

    async def test_link_of_an_admin_of_the_provider(self, start_platform: Start) -> None:
        """Role admin holds from the first sign-in on; but who was local before is no first Platform Admin."""
        running = await start_platform()
        local = await running.user("anna")
        await approve(running.platform, "anna", {})
        account, session = await enter(running, replace(ANNA, role="admin"))
        assert not await is_accepted(local)
        assert (account.role, account.platform_admin) == ("admin", False)
        claims = jwt.decode(session.token or "", options={"verify_signature": False})
        assert claims["platform_admin"] is False

    async def test_identity_that_has_an_account(self, start_platform: Start) -> None:
        """An approval that comes after the separate account links nothing, and is not consumed."""
        running = await start_platform()
        local = await running.user("anna")
        separate, _ = await enter(running, ANNA)
        await approve(running.platform, "anna", {})
        again, _ = await enter(running, ANNA)
        assert again.id == separate.id
        assert await is_accepted(local)
        async with running.platform.database.read() as reading:
            assert len((await reading.scalars(select(LinkApproval))).all()) == 1

    @pytest.mark.parametrize(
        ("name", "approved"), [("an na", "an-na"), ("\u212aay", "kay"), ("bo\u017f", "bos")]
    )
    async def test_name_that_only_resembles(self, start_platform: Start, name: str, approved: str) -> None:
        """A name that had to be made to fit is not the approved one, nor one that only folds to it."""
        running = await start_platform()
        local = await running.user(approved)
        await approve(running.platform, approved, {})
        account, _ = await enter(running, replace(ANNA, username=name))
        assert account.id != local.user["id"]
        assert await is_accepted(local)

    async def test_deactivated_account(self, start_platform: Start) -> None:
        """It is not linked, and the approval waits."""
        running = await start_platform()
        local = await running.user("anna")
        await approve(running.platform, "anna", {})
        await running.platform.administration.set_active(local.user["id"], False, by=None)
        with pytest.raises(AccountDisabled):
            await enter(running, ANNA)
        assert (await accounts(running))["anna"].sso_subject is None

    async def test_link_happens_once(self, start_platform: Start, database_url: str | None) -> None:
        """Of two identities of the approved name, at the same moment, one gets the account."""
        running = await start_platform(env={"DATABASE_URL": database_url})
        local = await running.user("anna")
        await approve(running.platform, "anna", {})
        rival = replace(ANNA, subject="s-2", email="rival@corp.example")
        found = await asyncio.gather(enter(running, ANNA), enter(running, rival))
        ids = [account.id for account, _ in found]
        assert len(set(ids)) == 2
        assert ids.count(local.user["id"]) == 1


class TestRole:
    async def test_promotion_revokes_nothing(self, start_platform: Start) -> None:
        """The old session goes on; the change is audited."""
        running = await start_platform()
        _, before = await enter(running, ANNA)
        account, _ = await enter(running, replace(ANNA, role="admin"))
        assert account.role == "admin"
        assert await is_accepted(before)
        (entry,) = await audited(running, "account.role_changed")
        assert (entry.before_state["role"], entry.after_state["role"]) == ("user", "admin")

    async def test_demotion_ends_sessions(self, start_platform: Start, database_url: str | None) -> None:
        """All that were open; the one that the sign-in opens holds."""
        running = await start_platform(env={"DATABASE_URL": database_url})
        await running.user("boss", role="admin")
        _, before = await enter(running, replace(ANNA, role="admin"))
        account, after = await enter(running, ANNA)
        assert account.role == "user"
        assert not await is_accepted(before)
        assert await is_accepted(after)

    async def test_last_administrator_stays(self, start_platform: Start, database_url: str | None) -> None:
        """A provider that forgets the groups locks nobody out; it is audited."""
        running = await start_platform(env={"DATABASE_URL": database_url})
        _, before = await enter(running, replace(ANNA, role="admin"))
        account, _ = await enter(running, ANNA)
        assert account.role == "admin"
        assert await is_accepted(before)
        assert len(await audited(running, "account.demotion_refused")) == 1

    async def test_one_of_the_last_two_stays(self, start_platform: Start, database_url: str | None) -> None:
        """Two demotions at the same moment leave one administrator."""
        running = await start_platform(env={"DATABASE_URL": database_url})
        bert = ExternalIdentity(ANNA.issuer, "s-2", "bert", "bert@corp.example", "user")
        for identity in (ANNA, bert):
            await enter(running, replace(identity, role="admin"))
        await asyncio.gather(enter(running, ANNA), enter(running, bert))
        roles = sorted(account.role for account in (await accounts(running)).values())
        assert roles == ["admin", "user"]

    async def test_first_administrator_becomes_platform_admin(self, start_platform: Start) -> None:
        """On a fresh install, and the token says so already (spec 5.7)."""
        running = await start_platform()
        _, session = await enter(running, replace(ANNA, role="admin"))
        claims = jwt.decode(session.token or "", options={"verify_signature": False})
        assert claims["platform_admin"] is True


async def test_deactivated_account_is_refused(start_platform: Start) -> None:
    """And stays as it is."""
    running = await start_platform()
    account, session = await enter(running, ANNA)
    await running.platform.administration.set_active(account.id, False, by=None)
    with pytest.raises(AccountDisabled):
        await enter(running, replace(ANNA, email="new@corp.example"))
    assert (await accounts(running))["anna"].email == "anna@corp.example"
    assert not await is_accepted(session)


async def test_first_sign_ins_at_once(start_platform: Start, database_url: str | None) -> None:
    """Ten of one identity make one account."""
    running = await start_platform(env={"DATABASE_URL": database_url})
    found = await asyncio.gather(*(enter(running, ANNA) for _ in range(10)))
    assert len({account.id for account, _ in found}) == 1
    assert len(await accounts(running)) == 1
    assert len(await audited(running, "account.created")) == 1


async def test_registration_of_the_same_name_at_once(start_platform: Start, database_url: str | None) -> None:
    """Whoever is second gets another name, or the answer that it is taken; never an error of the server."""
    running = await start_platform(env={"DATABASE_URL": database_url})
    body = {"username": "anna", "email": "anna@corp.example", "password": "long enough"}
    (account, _), answer = await asyncio.gather(
        enter(running, ANNA), running.anonymous.post("/v1/auth/register", json=body)
    )
    assert answer.status == (409 if account.username == "anna" else 201), answer.body


async def test_end_of_sessions(start_platform: Start) -> None:
    """The provider's word ends all sessions of its account, and is audited; a stranger's ends none."""
    running = await start_platform()
    _, session = await enter(running, ANNA)
    async with running.platform.database.unit() as unit:
        assert not await end_external_sessions(unit, "https://other.example.net", "s-1", ORIGIN)
    assert await is_accepted(session)
    async with running.platform.database.unit() as unit:
        assert await end_external_sessions(unit, ANNA.issuer, "s-1", ORIGIN)
    assert not await is_accepted(session)
    assert len(await audited(running, "account.sessions_ended")) == 1


class DoorPlugin(Plugin):
    """Offers a way in, hears of accounts, and keeps mallory out."""

    name = "door"
    version = "1"

    def __init__(self) -> None:
        self.changes: list[str] = []

    @hookimpl
    def sign_in_methods(self) -> list[SignInMethod]:
        return [SignInMethod(name="door", label="The door", login_url="https://door.example/")]

    @hookimpl
    async def on_account_event(self, unit: Unit, account: Account, change: str) -> None:
        if account.username == "mallory":
            raise Conflict("mallory is not welcome")
        self.changes.append(change)


async def test_hook_sign_in_methods(start_platform: Start) -> None:
    """What a plugin offers is in the capabilities."""
    running = await start_platform(DoorPlugin)
    found = (await running.anonymous.get("/v1/auth/capabilities")).json()["sign_in_methods"]
    assert found == [{"name": "door", "label": "The door", "login_url": "https://door.example/"}]


async def test_plugins_hear_and_forbid(start_platform: Start) -> None:
    """Each change is told in its transaction; a veto leaves nothing behind."""
    plugin = DoorPlugin()
    running = await start_platform(plugin)
    await running.platform.accounts.register("boss", "boss@example.org", "long enough", role="admin")
    await running.platform.accounts.register("anna", "a@example.org", "long enough", role="user")
    await approve(running.platform, "anna", {})
    plugin.changes.clear()
    await enter(running, ANNA)
    await enter(running, replace(ANNA, role="admin"))
    await enter(running, ANNA)
    expected = ["linked", "signed_in", "promoted", "signed_in", "demoted", "signed_in"]
    assert [change for change in plugin.changes if not change.startswith("platform")] == expected
    with pytest.raises(Conflict):
        await enter(running, replace(ANNA, subject="s-9", username="mallory", email=None))
    assert "mallory" not in await accounts(running)
