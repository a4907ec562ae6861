"""An identity comes in: accounts found, linked or made, and brought up to date (spec 3.5, 5.5)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import jwt
import pytest
import pytest_asyncio

from builtin_plugins.accounts.api import (
    ACCOUNTS,
    ADMINISTRATION,
    ExternalIdentity,
    SignInMethod,
    end_external_sessions,
    sign_in_external,
    verified_addresses,
)
from builtin_plugins.accounts.errors import AccountDisabled
from builtin_plugins.accounts.link_approvals import approve
from builtin_plugins.accounts.platform_admins import PLATFORM_ADMINS
from kernel.auth.models import Account, LinkApproval
from kernel.sdk import Conflict, Plugin, Unit, hookimpl
from kernel.sdk.accounts import operator_of
from kernel.testing import Actor, Running, Start, audited, platforms, postgres_database

ANNA = ExternalIdentity("https://idp.example.net", "s-1", "anna", "anna@corp.example", "user")
ORIGIN = {"ip_address": "192.0.2.7"}

together = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["sqlite", "postgresql"])
async def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Running]:
    """One platform on each database, with an administrator, for tests that keep to people of their own."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres_database()) if request.param == "postgresql" else None
        async with platforms(tmp_path_factory.mktemp("external")) as start:
            shared = await start(env={"DATABASE_URL": url})
            await shared.user("boss", role="admin")
            yield shared


@pytest.fixture
def anna() -> ExternalIdentity:
    name = f"anna.{secrets.token_hex(4)}"
    return ExternalIdentity(ANNA.issuer, f"s-{name}", name, f"{name}@corp.example", "user")


async def enter(running: Running, identity: ExternalIdentity) -> tuple[Account, Actor]:
    account, token = await sign_in_external(running.platform, identity, ORIGIN)
    return account, Actor(running, token)


async def accounts(running: Running) -> dict[str, Account]:
    rows, _ = await running.platform.resource(ACCOUNTS).list()
    return {row.username: row for row in rows}


async def is_accepted(session: Actor) -> bool:
    """Whether a session still opens a door that any session opens."""
    return (await session.post("/v1/auth/refresh")).status == 200


async def is_approved(running: Running, account_id: int) -> bool:
    return await running.platform.database.read(
        lambda session: session.get(LinkApproval, account_id) is not None
    )


@together
async def test_first_sign_in_makes_an_account(running: Running, anna: ExternalIdentity) -> None:
    """With the provider's name, address and role, and without a password; the token is a session."""
    account, session = await enter(running, anna)
    assert (account.username, account.email, account.role) == (anna.username, anna.email, "user")
    assert account.password_hash is None
    assert account.linked_at is None
    assert await is_accepted(session)
    (entry,) = await audited(running, "account.created", account.id)
    assert entry.ip_address == "192.0.2.7"
    assert entry.after_state["issuer"] == anna.issuer


@together
async def test_an_address_is_proven_as_long_as_the_provider_says_so(
    running: Running, anna: ExternalIdentity
) -> None:
    async def is_proven() -> bool:
        rows = await running.platform.database.read(
            lambda session: session.execute(verified_addresses()).all()
        )
        return anna.email in {row.email_key for row in rows}

    await enter(running, anna)
    assert not await is_proven()  # silence is no proof
    await enter(running, replace(anna, is_email_verified=True))
    assert await is_proven()
    await enter(running, anna)
    assert not await is_proven()


@together
async def test_second_sign_in_finds_it(running: Running, anna: ExternalIdentity) -> None:
    """By issuer and subject, whatever else changed; the same subject of another issuer is somebody else."""
    first, _ = await enter(running, anna)
    moved = replace(anna, username=f"{anna.username}.b", email=f"b.{anna.email}")
    second, _ = await enter(running, moved)
    assert second.id == first.id
    assert (second.username, second.email) == (moved.username, moved.email)
    assert len(await audited(running, "account.synced", first.id)) == 1
    other, _ = await enter(running, replace(anna, issuer="https://other.example.net"))
    assert other.id != first.id


@together
async def test_what_the_provider_does_not_say_stays(running: Running, anna: ExternalIdentity) -> None:
    """An existing account keeps name, address and role; nothing is written, nothing audited."""
    await enter(running, replace(anna, role="admin"))
    account, _ = await enter(running, ExternalIdentity(anna.issuer, anna.subject))
    assert (account.username, account.email, account.role) == (anna.username, anna.email, "admin")
    assert await audited(running, "account.synced", account.id) == []


@together
@pytest.mark.parametrize(
    ("subject", "username", "expected_name", "expected_email"),
    [
        ("t-1", None, "t-1", "t-1@idp.example.net"),
        ("auth0|9 f", "Jürgen Groß", "Jurgen-Gro", None),
        ("t-2", "berta@corp.example", "berta-corp.example", "t-2@idp.example.net"),
        ("t-3", "x" * 80, "x" * 50, "t-3@idp.example.net"),
        ("***", "***", "user", None),
        ("t-4", "Robert'); DROP TABLE", "Robert-DROP-TABLE", "t-4@idp.example.net"),
    ],
)
async def test_names_are_made_to_fit(
    running: Running, subject: str, username: str | None, expected_name: str, expected_email: str | None
) -> None:
    """Any name becomes one of our pattern; without an address there is one at the provider's host."""
    account, _ = await enter(running, ExternalIdentity(ANNA.issuer, subject, username))
    assert account.username == expected_name
    assert account.role == "user"
    if expected_email is not None:
        assert account.email == expected_email
    assert account.email.endswith("@idp.example.net")
    assert set(account.email) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.@")


class TestCollisions:
    @together
    async def test_local_name_is_never_taken(self, running: Running, anna: ExternalIdentity) -> None:
        """Without an approval: an account of its own with a dash and 8 characters; refusal audited."""
        local = await running.user(str(anna.username).upper(), role="admin")
        account, _ = await enter(running, anna)
        assert account.id != local.user["id"]
        name, _, suffix = account.username.rpartition("-")
        assert (name, len(suffix)) == (anna.username, 8)
        assert account.role == "user"
        assert await is_accepted(local)
        assert (await running.sign_in(str(anna.username), local.password)).user["role"] == "admin"
        (entry,) = await audited(running, "sso_link.refused", local.user["id"])
        assert entry.after_state["subject"] == anna.subject

    @together
    async def test_suffix_stays(self, running: Running, anna: ExternalIdentity) -> None:
        """The next sign-in finds the same account, keeps its name, and is no refusal."""
        local = await running.user(anna.username)
        first, _ = await enter(running, anna)
        second, _ = await enter(running, anna)
        assert (second.id, second.username) == (first.id, first.username)
        assert len(await audited(running, "sso_link.refused", local.user["id"])) == 1

    async def test_suffix_that_is_taken_too(self, start_platform: Start, platform_home: Any) -> None:
        """Who registers the foreseeable name gains nothing, and the other name stays the same then."""
        elsewhere = await start_platform(home=platform_home / "elsewhere")
        await elsewhere.user("anna")
        foreseen, _ = await enter(elsewhere, ANNA)
        running = await start_platform()
        for name in ("anna", foreseen.username):
            await running.user(name)
        first, _ = await enter(running, ANNA)
        second, _ = await enter(running, ANNA)
        assert first.username == second.username
        assert first.username not in ("anna", foreseen.username)

    @together
    async def test_address_is_never_taken(self, running: Running, anna: ExternalIdentity) -> None:
        """The address of another account links nothing: the new one gets one at the provider's host."""
        local = await running.user()
        given = str(local.user["email"]).upper()
        account, _ = await enter(running, replace(anna, email=given))
        assert account.id != local.user["id"]
        assert account.email == f"{anna.subject}@idp.example.net"
        assert (await accounts(running))[local.user["username"]].email == local.user["email"]
        (entry,) = await audited(running, "account.created", account.id)
        assert given not in entry.after_state["email"]

    @together
    async def test_new_address_is_taken(self, running: Running, anna: ExternalIdentity) -> None:
        """An account whose address became another's at the provider keeps neither of the two."""
        first, _ = await enter(running, anna)
        local = await running.user()
        for _ in range(2):
            account, _ = await enter(running, replace(anna, email=local.user["email"]))
            assert (account.id, account.email) == (first.id, f"{anna.subject}@idp.example.net")
        account, _ = await enter(running, anna)
        assert account.email == anna.email
        assert len(await audited(running, "account.synced", first.id)) == 2

    @together
    async def test_names_of_two_identities(self, running: Running, anna: ExternalIdentity) -> None:
        """Two people whom two providers call the same are two accounts, at every sign-in."""
        other = replace(anna, issuer="https://other.example.net", email=None)
        seen = set()
        for _ in range(2):
            first, _ = await enter(running, anna)
            second, _ = await enter(running, other)
            assert first.username == anna.username
            assert second.username.startswith(f"{anna.username}-")
            seen.add((first.id, second.id, second.username))
        assert len(seen) == 1


class TestLink:
    @together
    @pytest.mark.parametrize("said", ["username", "email", "subject"])
    async def test_by_another_name(self, running: Running, anna: ExternalIdentity, said: str) -> None:
        """The operator names the identity as the provider does, where that is no username here."""
        local = await running.user()
        name = local.user["username"]
        identity = replace(anna, username=f"Ada@{anna.subject}.example", email=f"Ada@{anna.subject}.example")
        named = str(getattr(identity, said))
        await approve(running.platform, name, ORIGIN, named if said == "subject" else named.upper())
        stranger = replace(identity, subject="s-x" + anna.subject, username=name, email=f"x{identity.email}")
        assert (await enter(running, stranger))[0].id != local.user["id"], "the name alone is not approved"
        account, _ = await enter(running, identity)
        assert account.id == local.user["id"]
        assert not await is_approved(running, account.id)
        again, _ = await enter(running, identity)
        assert again.id == account.id

    @together
    async def test_one_identity_for_one_account(self, running: Running, anna: ExternalIdentity) -> None:
        """An identity is approved for one account; another approval of an account replaces the first."""
        one, two = await running.user(), await running.user()
        await approve(running.platform, one.user["username"], ORIGIN, anna.email)
        with pytest.raises(Conflict):
            await approve(running.platform, two.user["username"], ORIGIN, str(anna.email).upper())
        _, changed = await approve(running.platform, one.user["username"], ORIGIN, anna.subject)
        assert changed
        await approve(running.platform, two.user["username"], ORIGIN, anna.email)

    @together
    async def test_a_role_that_the_provider_does_not_say(
        self, running: Running, anna: ExternalIdentity
    ) -> None:
        local = await running.user(str(anna.username), role="admin")
        await approve(running.platform, local.user["username"], ORIGIN)
        account, _ = await enter(running, replace(anna, role=None))
        assert (account.id, account.role) == (local.user["id"], "admin")

    @together
    async def test_approved_account_is_taken(self, running: Running, anna: ExternalIdentity) -> None:
        """Approval consumed, password and sessions gone, flag cleared, role and address the provider's."""
        name = str(anna.username)
        local, other = await running.user(name, role="admin"), await running.user()
        await running.platform.resource(PLATFORM_ADMINS).grant(name)
        await approve(running.platform, name, {})
        account, session = await enter(running, anna)
        assert account.id == local.user["id"]
        assert (account.role, account.email, account.platform_admin) == ("user", anna.email, False)
        assert account.linked_at is not None
        assert not await is_accepted(local)
        assert await is_accepted(session)
        assert await is_accepted(other)
        body = {"username": name, "password": local.password}
        assert (await running.anonymous.post("/v1/auth/login", json=body)).status == 401
        assert not await is_approved(running, account.id)
        (entry,) = await audited(running, "sso_link.completed", account.id)
        assert entry.before_state["role"] == "admin"
        assert entry.before_state["platform_admin"] is True
        assert (entry.after_state["role"], entry.after_state["platform_admin"]) == ("user", False)
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

    @together
    async def test_identity_that_has_an_account(self, running: Running, anna: ExternalIdentity) -> None:
        """An approval that comes after the separate account links nothing, and is not consumed."""
        local = await running.user(anna.username)
        separate, _ = await enter(running, anna)
        await approve(running.platform, str(anna.username), {})
        again, _ = await enter(running, anna)
        assert again.id == separate.id
        assert await is_accepted(local)
        assert await is_approved(running, local.user["id"])

    @together
    @pytest.mark.parametrize(
        ("name", "approved"), [("an na", "an-na"), ("\u212aay", "kay"), ("bo\u017f", "bos")]
    )
    async def test_name_that_only_resembles(
        self, running: Running, anna: ExternalIdentity, name: str, approved: str
    ) -> None:
        """A name that had to be made to fit is not the approved one, nor one that only folds to it."""
        local = await running.user(approved)
        await approve(running.platform, approved, {})
        account, _ = await enter(running, replace(anna, username=name))
        assert account.id != local.user["id"]
        assert await is_accepted(local)

    @together
    async def test_deactivated_account(self, running: Running, anna: ExternalIdentity) -> None:
        local = await running.user(anna.username)
        await approve(running.platform, str(anna.username), {})
        await running.platform.resource(ADMINISTRATION).set_active(
            operator_of(running.platform), local.user["id"], False
        )
        with pytest.raises(AccountDisabled):
            await enter(running, anna)
        assert (await accounts(running))[str(anna.username)].sso_subject is None
        assert await is_approved(running, local.user["id"])

    @together
    async def test_link_happens_once(self, running: Running, anna: ExternalIdentity) -> None:
        """Of two identities of the approved name, at the same moment, one gets the account."""
        local = await running.user(anna.username)
        await approve(running.platform, str(anna.username), {})
        rival = replace(anna, subject=f"rival of {anna.subject}", email=None)
        found = await asyncio.gather(enter(running, anna), enter(running, rival))
        ids = [account.id for account, _ in found]
        assert len(set(ids)) == 2
        assert ids.count(local.user["id"]) == 1


class TestRole:
    @together
    async def test_promotion_revokes_nothing(self, running: Running, anna: ExternalIdentity) -> None:
        _, before = await enter(running, anna)
        account, _ = await enter(running, replace(anna, role="admin"))
        assert account.role == "admin"
        assert await is_accepted(before)
        (entry,) = await audited(running, "account.role_changed", account.id)
        assert (entry.before_state["role"], entry.after_state["role"]) == ("user", "admin")

    @together
    async def test_demotion_ends_sessions(self, running: Running, anna: ExternalIdentity) -> None:
        """All that were open; the one that the sign-in opens holds."""
        _, before = await enter(running, replace(anna, role="admin"))
        account, after = await enter(running, anna)
        assert account.role == "user"
        assert not await is_accepted(before)
        assert await is_accepted(after)

    async def test_last_administrator_stays(self, start_platform: Start) -> None:
        """A provider that forgets the groups locks nobody out; it is audited."""
        running = await start_platform()
        _, before = await enter(running, replace(ANNA, role="admin"))
        account, _ = await enter(running, ANNA)
        assert account.role == "admin"
        assert await is_accepted(before)
        assert len(await audited(running, "account.demotion_refused", account.id)) == 1

    async def test_one_of_the_last_two_stays(self, start_platform: Start, database_url: str | None) -> None:
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


@together
async def test_deactivated_account_is_refused(running: Running, anna: ExternalIdentity) -> None:
    account, session = await enter(running, anna)
    await running.platform.resource(ADMINISTRATION).set_active(
        operator_of(running.platform), account.id, False
    )
    with pytest.raises(AccountDisabled):
        await enter(running, replace(anna, email="new@corp.example"))
    assert (await accounts(running))[str(anna.username)].email == anna.email
    assert not await is_accepted(session)


@together
async def test_first_sign_ins_at_once(running: Running, anna: ExternalIdentity) -> None:
    found = await asyncio.gather(*(enter(running, anna) for _ in range(10)))
    (made,) = {account.id for account, _ in found}
    assert [name for name in await accounts(running) if name.startswith(str(anna.username))] == [
        anna.username
    ]
    assert len(await audited(running, "account.created", made)) == 1


@together
async def test_registration_of_the_same_name_at_once(running: Running, anna: ExternalIdentity) -> None:
    """Whoever is second gets another name, or the answer that it is taken; never an error of the server."""
    body = {"username": anna.username, "email": anna.email, "password": "long enough"}
    (account, _), answer = await asyncio.gather(
        enter(running, anna), running.anonymous.post("/v1/auth/register", json=body)
    )
    assert answer.status == (409 if account.username == anna.username else 201), answer.body


@together
async def test_end_of_sessions(running: Running, anna: ExternalIdentity) -> None:
    """The provider's word ends all sessions of its account, and is audited; a stranger's ends none."""
    account, session = await enter(running, anna)
    write, elsewhere = running.platform.database.write, "https://other.example.net"
    assert not await write(end_external_sessions, elsewhere, anna.subject, ORIGIN)
    assert await is_accepted(session)
    assert await write(end_external_sessions, anna.issuer, anna.subject, ORIGIN)
    assert not await is_accepted(session)
    assert len(await audited(running, "account.sessions_ended", account.id)) == 1


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
    def on_account_event(self, unit: Unit, account: Account, change: str) -> None:
        if account.username == "mallory":
            raise Conflict("mallory is not welcome")
        self.changes.append(change)


async def test_hook_sign_in_methods(start_platform: Start) -> None:
    running = await start_platform(DoorPlugin)
    found = (await running.anonymous.get("/v1/auth/capabilities")).json()["sign_in_methods"]
    assert found == [{"name": "door", "label": "The door", "login_url": "https://door.example/"}]


async def test_plugins_hear_and_forbid(start_platform: Start) -> None:
    """Plugins hear of each change in its transaction; a veto leaves nothing behind."""
    plugin = DoorPlugin()
    running = await start_platform(plugin)
    await running.platform.resource(ACCOUNTS).register(
        "boss", "boss@example.org", "long enough", role="admin"
    )
    await running.platform.resource(ACCOUNTS).register("anna", "a@example.org", "long enough", role="user")
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
