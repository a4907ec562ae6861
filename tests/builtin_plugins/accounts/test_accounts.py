"""`/v1/auth`: register, login, refresh, change-password, capabilities, with all answers of wire-facts 3.1."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import jwt
import pytest
import pytest_asyncio
from sqlalchemy import select, update

from builtin_plugins.accounts.api import ACCOUNTS
from kernel.auth.models import Account, AuditEntry
from kernel.errors import StartupError
from kernel.sdk import AUTHENTICATED, Context, Plugin, RouteTable, Unit, hookimpl
from kernel.sdk.accounts import TOKENS
from kernel.testing import Actor, Running, Start, platforms

SECRET = "a secret of at least thirty-two bytes, for tests"
PASSWORD = "correct horse"
together = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """One platform for all tests that leave it as it was."""
    async with platforms(tmp_path_factory.mktemp("accounts")) as start:
        yield await start(env={"JWT_SECRET": SECRET})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ana(shared: Running) -> Actor:
    """An account, registered and signed in the way people do."""
    body = {"username": "Ana", "email": "Ana@Example.org", "password": PASSWORD, "role": "admin"}
    answer = await shared.anonymous.post("/v1/auth/register", json=body)
    assert answer.status == 201
    return await shared.sign_in("Ana", PASSWORD)


def claims_of(actor: Actor) -> dict[str, Any]:
    return dict(jwt.decode(actor.token or "", SECRET, ["HS256"]))


def forged(claims: dict[str, Any], **changes: Any) -> str:
    return jwt.encode({**claims, **changes}, SECRET, "HS256")


async def change(running: Running, username: str, **values: Any) -> None:
    """Change an account the way an administrator's route will."""

    def make(unit: Unit) -> None:
        unit.session.execute(update(Account).where(Account.username == username).values(**values))
        account_id = unit.session.scalar(select(Account.id).where(Account.username == username))
        unit.notify("account", str(account_id))

    await running.platform.database.write(make)


@together
class TestRegister:
    async def test_success(self, shared: Running) -> None:
        """201 with the account; no token, no password, and never another role than `user`."""
        body = {
            "username": "new.user-1_",
            "email": "new@example.org",
            "password": "12345678",
            "role": "admin",
        }
        answer = await shared.anonymous.post("/v1/auth/register", json=body)
        assert answer.status == 201
        made = answer.json()
        assert set(made) == {"message", "user"}
        assert set(made["user"]) == {"id", "username", "email", "role", "created_at"}
        assert (made["user"]["username"], made["user"]["role"]) == ("new.user-1_", "user")
        assert made["user"]["created_at"].endswith(("Z", "+00:00"))

    @pytest.mark.parametrize(
        ("username", "email", "field"),
        [
            ("ana", "b@example.org", "username"),
            ("ANA", "b@example.org", "username"),
            ("b", "ana@example.ORG", "email"),
        ],
    )
    async def test_taken(self, shared: Running, ana: Actor, username: str, email: str, field: str) -> None:
        """409 says which of the two is taken; the spelling does not matter."""
        body = {"username": username, "email": email, "password": PASSWORD}
        answer = await shared.anonymous.post("/v1/auth/register", json=body)
        assert (answer.status, answer.json()["code"]) == (409, "already_exists")
        assert "already exists" in answer.detail and field in answer.detail

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("username", "with space"),
            ("username", "ünïcode"),
            ("username", "new\nline"),
            ("username", "line\n"),
            ("email", "nobody"),
            ("email", "a@b"),
            ("password", "1234567"),
        ],
    )
    async def test_a_bad_field(self, shared: Running, field: str, value: Any) -> None:
        body = {"username": "carl", "email": "carl@example.org", "password": PASSWORD, field: value}
        answer = await shared.anonymous.post("/v1/auth/register", json=body)
        assert answer.status == 422
        assert [item["loc"] for item in answer.detail] == [["body", field]]

    async def test_it_is_audited(self, shared: Running, ana: Actor) -> None:
        """A new account leaves an audit entry with the address it came from."""
        query = select(AuditEntry).where(AuditEntry.target_id == str(ana.user["id"]))
        entry = await shared.platform.database.read(lambda session: session.scalars(query).one())
        assert (entry.action, entry.target_type, entry.ip_address) == (
            "account.created",
            "account",
            "127.0.0.1",
        )
        assert entry.after_state == {"username": "Ana", "role": "user"}


async def test_registration_closed(start_platform: Start) -> None:
    running = await start_platform(env={"PLATFORM_REGISTRATION_MODE": "closed"})
    body = {"username": "carl", "email": "carl@example.org", "password": PASSWORD}
    answer = await running.anonymous.post("/v1/auth/register", json=body)
    assert (answer.status, answer.json()["code"]) == (403, "registration_closed")
    capabilities = (await running.anonymous.get("/v1/auth/capabilities")).json()
    assert capabilities["registration_mode"] == "closed"


async def test_one_name_wanted_at_once(start_platform: Start, database_url: str | None) -> None:
    """Of many registrations of one name at the same moment, one succeeds and the others are refused."""
    running = await start_platform(env={"DATABASE_URL": database_url})

    async def register(number: int) -> int:
        body = {"username": "same", "email": f"n{number}@example.org", "password": PASSWORD}
        return (await running.anonymous.post("/v1/auth/register", json=body)).status

    statuses = await asyncio.gather(*map(register, range(4)))
    assert sorted(statuses) == [201, 409, 409, 409]


@together
class TestLogin:
    async def test_success(self, shared: Running, ana: Actor) -> None:
        answer = await shared.anonymous.post("/v1/auth/login", json={"username": "Ana", "password": PASSWORD})
        body = answer.json()
        assert set(body) == {"access_token", "token_type", "expires_in", "user"}
        assert (body["token_type"], body["expires_in"]) == ("bearer", 900)
        assert set(body["user"]) == {"id", "username", "email", "role", "created_at", "must_change_password"}
        assert body["user"]["must_change_password"] is False

    @pytest.mark.parametrize("name", ["Ana", "ana", "ANA@example.org"])
    async def test_ways_to_write_a_name(self, shared: Running, ana: Actor, name: str) -> None:
        """The spelling does not matter, and the address of an account names it too."""
        answer = await shared.anonymous.post("/v1/auth/login", json={"username": name, "password": PASSWORD})
        assert answer.status == 200

    @pytest.mark.parametrize(
        ("name", "password"), [("Ana", "wrong"), ("nobody", PASSWORD), ("Ana", PASSWORD + " ")]
    )
    async def test_wrong(self, shared: Running, ana: Actor, name: str, password: str) -> None:
        """A wrong password and an unknown name get the same answer."""
        answer = await shared.anonymous.post("/v1/auth/login", json={"username": name, "password": password})
        expected = {"detail": "Invalid username or password", "code": "invalid_credentials"}
        assert (answer.status, answer.json()) == (401, expected)

    async def test_disabled(self, shared: Running) -> None:
        """The right password of a disabled account is 403, a wrong one stays 401."""
        await shared.platform.resource(ACCOUNTS).register("dora", "dora@example.org", PASSWORD)
        await change(shared, "dora", is_active=False)
        right = await shared.anonymous.post("/v1/auth/login", json={"username": "dora", "password": PASSWORD})
        wrong = await shared.anonymous.post("/v1/auth/login", json={"username": "dora", "password": "wrong"})
        assert (right.status, right.json()["code"], wrong.status) == (403, "account_disabled", 401)

    async def test_without_a_password(self, shared: Running) -> None:
        """An account of the identity provider has no password, and none fits."""
        await shared.platform.resource(ACCOUNTS).register("sso", "sso@example.org", PASSWORD)
        await change(shared, "sso", password_hash=None)
        answer = await shared.anonymous.post("/v1/auth/login", json={"username": "sso", "password": PASSWORD})
        assert answer.status == 401


@together
class TestClaims:
    async def test_names_and_types(self, shared: Running, ana: Actor) -> None:
        claims = claims_of(ana)
        assert set(claims) == {
            *("sub", "username", "email", "role", "iat", "exp", "jti"),
            *("auth_time", "epoch", "teams", "platform_admin"),
        }
        assert (claims["sub"], claims["username"], claims["role"]) == (str(ana.user["id"]), "Ana", "user")
        assert claims["exp"] - claims["iat"] == 900
        assert claims["auth_time"] == claims["iat"]
        assert (claims["epoch"], claims["teams"], claims["platform_admin"]) == (0, [], False)

    async def test_no_two_tokens_are_the_same(self, shared: Running, ana: Actor) -> None:
        again = await shared.sign_in("Ana", PASSWORD)
        assert claims_of(again)["jti"] != claims_of(ana)["jti"]


async def test_claims_of_a_plugin(start_platform: Start) -> None:
    """A plugin may add claims, but none that the kernel mints."""

    class Teams(Plugin):
        name = "teams"

        @hookimpl
        def token_claims(self, account: Account) -> dict[str, Any]:
            return {"teams": [7, 9], "tenant_id": 3, "role": "admin", "sub": "1"}

    running = await start_platform(Teams, env={"JWT_SECRET": SECRET})
    bob = await running.user("bob")
    claims = claims_of(bob)
    assert (claims["teams"], claims["tenant_id"], claims["role"]) == ([7, 9], 3, "user")
    assert claims["sub"] == str(bob.user["id"])
    assert (await bob.get("/v1/permissions")).status == 200


@together
class TestRefresh:
    async def test_success(self, shared: Running, ana: Actor) -> None:
        """200 with a fresh token and without a user; the session began when it began."""
        began = int(time.time()) - 600
        old = forged(claims_of(ana), iat=began, auth_time=began)
        answer = await Actor(shared, old).post("/v1/auth/refresh")
        assert (answer.status, set(answer.json())) == (200, {"access_token", "token_type", "expires_in"})
        fresh = claims_of(Actor(shared, answer.json()["access_token"]))
        assert fresh["iat"] >= int(time.time()) - 5
        assert fresh["auth_time"] == began

    async def test_expired_within_the_grace(self, shared: Running, ana: Actor) -> None:
        """A token that has expired can be traded, for as long as the grace lasts."""
        expired = forged(claims_of(ana), exp=int(time.time()) - 700 * 60)
        assert (await Actor(shared, expired).get("/v1/auth/capabilities")).status == 401
        assert (await Actor(shared, expired).post("/v1/auth/refresh")).status == 200

    @pytest.mark.parametrize(
        ("changes", "code"),
        [
            ({"exp": -721 * 60}, "session_over"),
            ({"auth_time": -25 * 3600}, "session_over"),
            ({"epoch": None}, "unauthorized"),
        ],
    )
    async def test_too_old(
        self, shared: Running, ana: Actor, changes: dict[str, int | None], code: str
    ) -> None:
        """401 past the grace, past the cap of the session, and after a revocation."""
        now = int(time.time())
        values = {name: -1 if value is None else now + value for name, value in changes.items()}
        answer = await Actor(shared, forged(claims_of(ana), **values)).post("/v1/auth/refresh")
        assert (answer.status, answer.json()["code"]) == (401, code)

    async def test_a_service_token(self, shared: Running) -> None:
        token = shared.platform.resource(TOKENS).mint_service("indexer", 1)
        answer = await Actor(shared, token).post("/v1/auth/refresh")
        assert (answer.status, answer.json()["code"]) == (401, "unauthorized")

    @pytest.mark.parametrize("began", ["yesterday", None, [], 1.5, True])
    async def test_a_sign_in_that_is_no_time(self, shared: Running, ana: Actor, began: Any) -> None:
        """401 for a token whose session began at no time, on every route."""
        token = forged(claims_of(ana), auth_time=began)
        assert (await Actor(shared, token).post("/v1/auth/refresh")).status == 401
        assert (await Actor(shared, token).get("/v1/permissions")).status == 401

    async def test_claims_are_derived_anew(self, shared: Running) -> None:
        """A promotion takes effect at the next refresh; what nobody vouches for any more is dropped."""
        fay = await shared.user("fay")
        await change(shared, "fay", role="admin")
        token = forged(claims_of(fay), active_tenant_id=5)
        answer = await Actor(shared, token).post("/v1/auth/refresh")
        fresh = claims_of(Actor(shared, answer.json()["access_token"]))
        assert fresh["role"] == "admin"
        assert "active_tenant_id" not in fresh


@pytest.mark.parametrize(
    ("env", "changes", "status"),
    [
        ({"JWT_REFRESH_GRACE_MINUTES": "0"}, {"exp": -2}, 401),
        ({"JWT_REFRESH_GRACE_MINUTES": "0"}, {"exp": 60}, 200),
        ({"JWT_SESSION_MAX_HOURS": "0"}, {"auth_time": -1000 * 3600}, 200),
        ({"JWT_SESSION_MAX_HOURS": "1"}, {"auth_time": -3700}, 401),
    ],
)
async def test_settings_of_refresh(
    start_platform: Start, env: dict[str, str], changes: dict[str, int], status: int
) -> None:
    running = await start_platform(env={"JWT_SECRET": SECRET, **env})
    bob = await running.user("bob")
    values = {name: int(time.time()) + value for name, value in changes.items()}
    answer = await Actor(running, forged(claims_of(bob), **values)).post("/v1/auth/refresh")
    assert answer.status == status


@together
class TestChangePassword:
    async def test_success(self, shared: Running) -> None:
        """200 with a token that stays signed in; every other session ends; the new password counts."""
        here = await shared.user("gus")
        there = await shared.sign_in("gus", here.password)
        body = {"current_password": here.password, "new_password": "battery staple"}
        answer = await here.post("/v1/auth/change-password", json=body)
        assert (answer.status, set(answer.json())) == (200, {"access_token", "token_type", "expires_in"})
        assert (await Actor(shared, answer.json()["access_token"]).get("/v1/permissions")).status == 200
        assert (await here.get("/v1/permissions")).status == 401
        assert (await there.get("/v1/auth/capabilities")).status == 401
        assert (await there.post("/v1/auth/refresh")).status == 401
        await shared.sign_in("gus", "battery staple")
        old = await shared.anonymous.post(
            "/v1/auth/login", json={"username": "gus", "password": here.password}
        )
        assert old.status == 401

    async def test_the_session_is_not_prolonged(self, shared: Running) -> None:
        """The replacement token belongs to the same session: its cap counts from the original sign-in."""
        hal = await shared.user("hal")
        began = int(time.time()) - 3600
        older = Actor(shared, forged(claims_of(hal), auth_time=began))
        body = {"current_password": hal.password, "new_password": "battery staple"}
        answer = await older.post("/v1/auth/change-password", json=body)
        assert claims_of(Actor(shared, answer.json()["access_token"]))["auth_time"] == began

    async def test_past_the_cap(self, shared: Running) -> None:
        """A session that is too old changes nothing: 401 asks to sign in again."""
        hana = await shared.user("hana")
        older = Actor(shared, forged(claims_of(hana), auth_time=int(time.time()) - 25 * 3600))
        body = {"current_password": hana.password, "new_password": "battery staple"}
        answer = await older.post("/v1/auth/change-password", json=body)
        assert (answer.status, answer.json()["code"]) == (401, "session_over")
        await shared.sign_in("hana", hana.password)

    @pytest.mark.parametrize(
        ("body", "status", "code"),
        [
            ({"current_password": "wrong", "new_password": "battery staple"}, 400, "wrong_password"),
            ({"current_password": PASSWORD, "new_password": PASSWORD}, 400, "same_password"),
            ({"current_password": "wrong", "new_password": "wrong"}, 422, "validation_error"),
            ({"current_password": "", "new_password": "battery staple"}, 422, "validation_error"),
            ({"current_password": PASSWORD}, 422, "validation_error"),
            ({}, 422, "validation_error"),
        ],
    )
    async def test_refused(
        self, shared: Running, ana: Actor, body: dict[str, str], status: int, code: str
    ) -> None:
        """400 for a wrong or an unchanged password, 422 for a bad body; nothing changes."""
        answer = await ana.post("/v1/auth/change-password", json=body)
        assert (answer.status, answer.json()["code"]) == (status, code)
        assert (await ana.get("/v1/permissions")).status == 200

    async def test_a_service(self, shared: Running) -> None:
        service = Actor(shared, shared.platform.resource(TOKENS).mint_service("indexer", 1))
        body = {"current_password": PASSWORD, "new_password": "battery staple"}
        assert (await service.post("/v1/auth/change-password", json=body)).status == 401

    async def test_an_account_of_the_identity_provider(self, shared: Running) -> None:
        kim = await shared.user("kim")
        await change(shared, "kim", password_hash=None)
        body = {"current_password": PASSWORD, "new_password": "battery staple"}
        answer = await kim.post("/v1/auth/change-password", json=body)
        assert (answer.status, answer.json()["code"]) == (409, "sso_account")

    async def test_twice_at_once(self, shared: Running) -> None:
        """Of two changes at the same moment one wins; the other one's password does not count."""
        lee = await shared.user("lee")
        bodies = [{"current_password": lee.password, "new_password": f"new password {n}"} for n in (1, 2)]
        answers = await asyncio.gather(*(lee.post("/v1/auth/change-password", json=body) for body in bodies))
        assert sorted(answer.status for answer in answers) in ([200, 400], [200, 401])
        won = bodies[[answer.status for answer in answers].index(200)]["new_password"]
        await shared.sign_in("lee", won)


async def test_capabilities(start_platform: Start) -> None:
    running = await start_platform()
    answer = await running.anonymous.get("/v1/auth/capabilities")
    assert answer.json() == {
        "password_reset_email": False,
        "email_verification": False,
        "registration_mode": "open",
        "password_reset_link_minutes": None,
        "self_serve_personal_orgs": False,
        "sign_in_methods": [],
        "first_account_wanted": True,
    }


class TestSecret:
    async def test_one_is_made_and_kept(self, start_platform: Start) -> None:
        """Without JWT_SECRET a random one is made, and tokens outlive a restart."""
        first = await start_platform()
        bob = await first.user("bob")
        second = await start_platform()
        assert (await Actor(second, bob.token).get("/v1/permissions")).status == 200

    async def test_rotation(self, start_platform: Start) -> None:
        """With the old secret named as the previous one, its tokens hold until they expire."""
        first = await start_platform(env={"JWT_SECRET": SECRET})
        bob = await first.user("bob")
        new = {"JWT_SECRET": SECRET[::-1], "JWT_PREVIOUS_SECRET": SECRET}
        second = await start_platform(env=new)
        assert (await Actor(second, bob.token).get("/v1/permissions")).status == 200
        fresh = (await Actor(second, bob.token).post("/v1/auth/refresh")).json()["access_token"]
        assert jwt.decode(fresh, SECRET[::-1], ["HS256"])["sub"] == str(bob.user["id"])

    async def test_too_short(self, start_platform: Start) -> None:
        """A secret of fewer than 32 bytes stops the start, with the command that makes one."""
        with pytest.raises(StartupError, match=r"JWT_SECRET.*32 bytes.*openssl rand"):
            await start_platform(env={"JWT_SECRET": "short"})


class Switch(Plugin):
    """Asks for a token with a further claim, as a switch of the organization does."""

    name = "switch"

    @hookimpl
    def register_routes(self) -> list[RouteTable]:
        table = RouteTable("Switch")

        @table.post("/v1/switch", access=AUTHENTICATED, returns=str)
        async def switch(ctx: Context) -> str:
            """Re-issue the caller's token."""
            return await ctx.platform.resource(ACCOUNTS).reissue(ctx.principal, {"place": 7})

        return [table]

    @hookimpl
    def token_claims(self, account: Account, previous: dict[str, Any] | None) -> dict[str, Any]:
        return {"place": (previous or {}).get("place", 0)}


class TestReissue:
    async def test_it_goes_on_with_the_session(self, start_platform: Start) -> None:
        """The new token asks the hooks with the further claims; its session began when it began."""
        running = await start_platform(Switch, env={"JWT_SECRET": SECRET})
        ana = await running.user("ana")
        began = int(time.time()) - 3600
        answer = await Actor(running, forged(claims_of(ana), auth_time=began)).post("/v1/switch")
        claims = claims_of(Actor(running, answer.json()))
        assert (claims["place"], claims["auth_time"]) == (7, began)

    async def test_past_the_cap(self, start_platform: Start) -> None:
        """Switching to and fro does not make a session live for ever."""
        running = await start_platform(Switch, env={"JWT_SECRET": SECRET})
        ana = await running.user("ana")
        token = forged(claims_of(ana), auth_time=int(time.time()) - 25 * 3600)
        answer = await Actor(running, token).post("/v1/switch")
        assert (answer.status, answer.json()["code"]) == (401, "session_over")
