"""Personal access tokens: shown once, kept as a hash, as good as the account behind them and never better."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import aiohttp
import pytest
from sqlalchemy import text, update

from builtin_plugins.access_tokens.live import LIVE_TOKENS
from builtin_plugins.access_tokens.models import AccessToken
from kernel.auth.states import TOPIC as ACCOUNT_TOPIC
from kernel.sdk import (
    AUTHENTICATED,
    Account,
    Context,
    Plugin,
    RouteTable,
    Unit,
    hookimpl,
    send_events,
    utc_now,
)
from kernel.sdk.accounts import Decision, revoke_sessions
from kernel.testing import Actor, Reply, Running, Start
from tests.fakes.audit import audited
from tests.fakes.deleting import deletion
from tests.fakes.echo import EchoPlugin
from tests.fakes.rows import execute
from tests.fakes.waiting import eventually

TOKENS = "/v1/auth/tokens"
WHO = "/v1/echo/private"


class Ticking(Plugin):
    """Streams until its caller may not listen any more."""

    name = "ticking"

    @hookimpl
    def register_routes(self) -> list[RouteTable]:
        table = RouteTable("Ticking")

        @table.get("/v1/ticking", access=AUTHENTICATED, media_type="text/event-stream", returns=str)
        async def tick(ctx: Context) -> Any:
            """Stream one event, then nothing."""
            return await send_events(ctx.request, ticks())

        async def ticks() -> Any:
            yield "tick", {}
            await asyncio.Event().wait()

        return [table]


class Meanwhile(Plugin):
    """Has something happen between the moment when a caller is known and that when the stream begins."""

    name = "meanwhile"

    def __init__(self) -> None:
        self.happens: Callable[[], Awaitable[Any]] | None = None

    @hookimpl
    async def decide_access(self, ctx: Context) -> Decision | None:
        happens, self.happens = self.happens, None
        if happens is not None:
            await happens()
        return None


class RevokingJudge(Plugin):
    """Ends all sessions between the moment when a caller is known and that when a token is made."""

    name = "revoking_judge"

    @hookimpl
    async def decide_access(self, ctx: Context) -> Decision | None:
        if ctx.request.method == "POST" and ctx.principal.id is not None:
            await ctx.platform.database.write(lambda unit: revoke_sessions(unit, ctx.principal.id or 0))
        return None


async def started(start_platform: Start, **options: Any) -> Running:
    return await start_platform("access_tokens", EchoPlugin, Ticking, **options)


async def new_program(actor: Actor, **body: Any) -> Actor:
    """A program with a new token of an account."""
    answer = await actor.post(TOKENS, json={"name": "script", **body})
    assert answer.status == 201, answer.body
    return Actor(actor.running, answer.json()["token"], answer.json())


async def make_platform_admin(running: Running, actor: Actor) -> None:
    def grant(unit: Unit) -> None:
        change = update(Account).where(Account.id == actor.user["id"]).values(platform_admin=True)
        unit.session.execute(change)
        unit.notify(ACCOUNT_TOPIC, str(actor.user["id"]))

    await running.platform.database.write(grant)


async def refused(actor: Actor) -> Reply:
    """The refusal of a credential, as soon as its process has heard of it."""

    async def is_refused() -> bool:
        return (await actor.get(WHO)).status == 401

    await eventually(is_refused, 8)
    return await actor.get(WHO)


async def test_a_program_acts_as_its_account(start_platform: Start, database_url: str | None) -> None:
    """A token is shown once, looks like one, is listed without its value, and speaks for its account."""
    running = await started(start_platform, env={"DATABASE_URL": database_url})
    ana = await running.user("ana")
    answer = await ana.post(TOKENS, json={"name": "indexer", "scopes": ["manage", "ask"]})
    assert (answer.status, answer.headers["Cache-Control"]) == (201, "no-store")
    record = answer.json()
    token = record.pop("token")
    assert re.fullmatch(r"plk_[0-9A-Za-z]{46}", token)
    assert (record["scopes"], record["last_used_at"], token[-4:]) == (
        ["ask", "manage"],
        None,
        record["last_four"],
    )
    assert (await ana.get(TOKENS)).json()["items"] == [record]
    program = Actor(running, token)
    assert (await program.get(WHO)).json()["subject"] == str(ana.user["id"])
    listed = (await ana.get(TOKENS)).json()
    assert listed["total"] == 1
    assert listed["items"][0]["last_used_at"] is not None
    rows = await running.platform.database.read(
        lambda session: str(session.execute(text("SELECT * FROM access_tokens_token")).all())
    )
    assert token not in rows
    assert token[4:-4] not in rows


async def test_end(start_platform: Start, database_url: str | None) -> None:
    """A deleted token is refused in every process; another's is as unknown, and stays."""
    env = {"DATABASE_URL": database_url}
    here, there = await started(start_platform, env=env), await started(start_platform, env=env)
    ana, bob = await here.user("ana"), await here.user("bob")
    program = await new_program(ana)
    elsewhere = Actor(there, program.token)
    assert (await elsewhere.get(WHO)).status == 200
    path = f"{TOKENS}/{program.user['id']}"
    foreign, unknown = await bob.delete(path), await bob.delete(f"{TOKENS}/999999")
    assert (foreign.status, foreign.json()) == (unknown.status, unknown.json())
    assert foreign.status == 404
    assert (await program.get(WHO)).status == 200
    assert (await ana.delete(path)).status == 204
    assert (await program.get(WHO)).status == 401
    assert "revoked" in (await refused(elsewhere)).detail
    assert (await ana.get(TOKENS)).json()["total"] == 0


async def test_an_end_cuts_streams(start_platform: Start) -> None:
    """What streams to a token ends with it; what streams to the account's session goes on."""
    running = await started(start_platform)
    ana = await running.user("ana")
    program = await new_program(ana)
    async with asyncio.timeout(8), _stream(running, program) as theirs, _stream(running, ana) as own:
        assert (await ana.delete(f"{TOKENS}/{program.user['id']}")).status == 204
        assert b"session_revoked" in await theirs.content.read()
        assert not own.content.is_eof()


async def test_an_end_before_the_first_byte(start_platform: Start) -> None:
    """A token that is deleted while its request is being prepared gets no stream for long."""
    judge = Meanwhile()
    running = await start_platform("access_tokens", EchoPlugin, Ticking, judge)
    ana = await running.user("ana")
    program = await new_program(ana)

    async def end() -> None:
        assert (await ana.delete(f"{TOKENS}/{program.user['id']}")).status == 204
        await refused(program)

    judge.happens = end
    async with asyncio.timeout(20), _stream(running, program) as answer:
        assert b"session_revoked" in await answer.content.read()


async def test_a_new_token_streams_elsewhere(start_platform: Start, database_url: str | None) -> None:
    """What another process hears of a new token does not end what that token already streams there."""
    env = {"DATABASE_URL": database_url}
    here, there = await started(start_platform, env=env), await started(start_platform, env=env)
    ana, bob = await here.user("ana"), await here.user("bob")
    program, other = await new_program(ana), await new_program(ana)
    async with asyncio.timeout(20), _stream(there, program) as theirs, _stream(there, bob) as looked_at:
        assert (await ana.delete(f"{TOKENS}/{other.user['id']}")).status == 204
        await refused(Actor(there, other.token))  # notices arrive in their order
        query = update(Account).where(Account.id == bob.user["id"]).values(epoch=Account.epoch + 1)
        await execute(there.platform.database, query)
        await looked_at.content.read()  # ended by the look at all open streams, as nobody sent a notice
        assert not theirs.content.is_eof()
        assert (await ana.delete(f"{TOKENS}/{program.user['id']}")).status == 204
        assert b"session_revoked" in await theirs.content.read()


def _stream(running: Running, actor: Actor) -> Any:
    headers = {"Authorization": f"Bearer {actor.token}"}
    return running.session.get(running.url + "/v1/ticking", headers=headers)


async def test_a_token_in_use_is_recalled(start_platform: Start) -> None:
    """Once a request has used it, it is identified without waiting, until it ends or its account changes."""
    running = await started(start_platform)
    ana = await running.user("ana")
    program, doomed = await new_program(ana), await new_program(ana)
    live = running.platform.resource(LIVE_TOKENS)
    assert live.recall(program.token) is None
    for actor in (program, doomed):
        assert (await actor.get(WHO)).status == 200
    recalled = live.recall(program.token)
    assert recalled == await live.principal_of(program.token)
    assert recalled.scopes is not None
    assert (await ana.delete(f"{TOKENS}/{doomed.user['id']}")).status == 204
    assert live.recall(doomed.token) is None
    await running.platform.database.write(lambda unit: revoke_sessions(unit, ana.user["id"]))
    assert live.recall(program.token) is None


async def test_expiry(start_platform: Start) -> None:
    """A token ends by itself; a time in the past, without a zone or beyond all years is refused."""
    running = await started(start_platform)
    ana = await running.user("ana")
    program = await new_program(ana, expires_at=(utc_now() + timedelta(days=1)).isoformat())
    assert (await program.get(WHO)).status == 200

    def expire(unit: Unit) -> None:
        row = unit.session.get(AccessToken, program.user["id"])
        row.expires_at = utc_now() - timedelta(seconds=1)
        unit.notify("access_tokens", f"{row.id}:{row.token_hash}")

    await running.platform.database.write(expire)
    assert "expired" in (await refused(program)).detail
    for wrong in ("2020-01-01T00:00:00Z", "2999-01-01T00:00:00", "9999-12-31T23:59:59-23:59"):
        assert (await ana.post(TOKENS, json={"name": "x", "expires_at": wrong})).status == 422


@pytest.mark.parametrize(
    "wrong",
    ["plk_", "plk_short", "plk_" + "0" * 46, "plk_" + "0" * 40 + "000000", "plk_" + "ä" * 46, "plk_" * 3000],
)
async def test_words_that_are_no_tokens(start_platform: Start, wrong: str) -> None:
    """Whatever only begins like a token is refused like a bad bearer, on open routes too."""
    running = await started(start_platform)
    headers = {"Authorization": f"Bearer {wrong}"}
    try:
        answer = await running.anonymous.get("/v1/echo/open", headers=headers)
    except aiohttp.ClientError:
        pytest.skip("the client refuses to send it")
    assert answer.status in (400, 401)


class TestWithTheAccount:
    """What becomes of the tokens when something becomes of their account."""

    async def test_deactivation(self, start_platform: Start, database_url: str | None) -> None:
        """Deactivation ends every token for good: a reactivated account begins without any."""
        running = await started(start_platform, env={"DATABASE_URL": database_url})
        boss, ana = await running.user("boss"), await running.user("ana")
        await make_platform_admin(running, boss)
        program = await new_program(ana)
        path = f"/v1/auth/users/{ana.user['id']}/status"
        assert (await boss.patch(path, json={"is_active": False})).status == 200
        await refused(program)
        assert (await boss.patch(path, json={"is_active": True})).status == 200
        await refused(program)
        again = await running.sign_in("ana", ana.password)
        assert (await again.get(TOKENS)).json()["total"] == 0
        ended = await audited(running.platform, "access_token.ended")
        assert [entry.after_state for entry in ended] == [{"by": "deactivated"}]

    async def test_deactivated_unheard(self, start_platform: Start) -> None:
        """A token that is left because the plugin was off opens nothing while its account is inactive."""
        running = await started(start_platform)
        ana = await running.user("ana")
        program = await new_program(ana)
        assert (await program.get(WHO)).status == 200
        change = update(Account).where(Account.id == ana.user["id"]).values(is_active=False)
        await execute(running.platform.database, change, tell=(ACCOUNT_TOPIC, str(ana.user["id"])))
        await refused(program)

    async def test_password(self, start_platform: Start) -> None:
        """The owner's own change of the password ends sessions and no token; a reset ends both."""
        running = await started(start_platform)
        boss, ana = await running.user("boss"), await running.user("ana")
        await make_platform_admin(running, boss)
        program = await new_program(ana)
        body = {"current_password": ana.password, "new_password": "another long one"}
        assert (await ana.post("/v1/auth/change-password", json=body)).status == 200
        await refused(ana)
        assert (await program.get(WHO)).status == 200
        path = f"/v1/auth/users/{ana.user['id']}/reset-password"
        assert (await boss.post(path, json={"mode": "generate"})).status == 200
        await refused(program)

    async def test_rights_are_those_of_now(self, start_platform: Start) -> None:
        """A token holds what the account holds at the moment: a demotion narrows it, and ends nothing."""
        running = await started(start_platform)
        boss, other = await running.user("boss", role="admin"), await running.user("other", role="admin")
        await make_platform_admin(running, boss)
        program = await new_program(other)
        assert (await program.get("/v1/echo/admin")).status == 200
        path = f"/v1/auth/users/{other.user['id']}/role"
        assert (await boss.patch(path, json={"role": "user"})).status == 200
        assert (await program.get("/v1/echo/admin")).status == 403
        assert (await program.get(WHO)).status == 200

    async def test_a_session_that_ended_makes_no_token(self, start_platform: Start) -> None:
        """A session that is revoked while it asks gets no token to stay with."""
        running = await start_platform("access_tokens", RevokingJudge)
        ana = await running.user("ana")
        assert (await ana.post(TOKENS, json={"name": "x"})).status == 401
        again = await running.sign_in("ana", ana.password)
        assert (await again.get(TOKENS)).json()["total"] == 0


async def test_platform_admins_see_and_end(start_platform: Start) -> None:
    """Platform Admins list the tokens of any account without their values, and end them; nobody else does."""
    running = await started(start_platform)
    boss, ana, eve = await running.user("boss"), await running.user("ana"), await running.user("eve")
    await make_platform_admin(running, boss)
    program = await new_program(ana)
    path = f"/v1/auth/users/{ana.user['id']}/tokens"
    assert (await eve.get(path)).status == 403
    listed = (await boss.get(path)).json()
    assert [item["id"] for item in listed["items"]] == [program.user["id"]]
    assert program.token not in str(listed)
    assert (await boss.get("/v1/auth/users/999999/tokens")).status == 404
    assert (await eve.delete(f"{path}/{program.user['id']}")).status == 403
    assert (await boss.delete(f"/v1/auth/users/{eve.user['id']}/tokens/{program.user['id']}")).status == 404
    assert (await boss.delete(f"{path}/{program.user['id']}")).status == 204
    await refused(program)
    told = [entry for entry in await audited(running.platform) if entry.target_type == "access_token"]
    assert [(entry.action, entry.actor_id) for entry in told] == [
        ("access_token.created", ana.user["id"]),
        ("access_token.revoked", boss.user["id"]),
    ]
    assert program.token not in str([(entry.before_state, entry.after_state) for entry in told])


async def test_a_token_makes_no_tokens(start_platform: Start) -> None:
    """A token neither makes, lists nor ends tokens, and becomes no session."""
    running = await started(start_platform)
    ana = await running.user("ana")
    program = await new_program(ana)
    assert (await program.post(TOKENS, json={"name": "x"})).json()["code"] == "token_scope_missing"
    assert (await program.get(TOKENS)).status == 403
    assert (await program.delete(f"{TOKENS}/{program.user['id']}")).status == 403
    assert (await program.post("/v1/auth/refresh")).status == 401
    body = {"current_password": ana.password, "new_password": "another long one"}
    assert (await program.post("/v1/auth/change-password", json=body)).status == 403


async def test_bounds(start_platform: Start) -> None:
    """Names and scopes are checked, and an account has a hundred tokens at most."""
    running = await started(start_platform)
    ana = await running.user("ana")
    for wrong in ({"name": ""}, {"name": "x", "scopes": []}, {"name": "x", "scopes": ["everything"]}, {}):
        assert (await ana.post(TOKENS, json=wrong)).status == 422
    made_all = [await ana.post(TOKENS, json={"name": f"n{n}"}) for n in range(101)]
    assert {answer.status for answer in made_all[:100]} == {201}
    assert (made_all[100].status, made_all[100].json()["code"]) == (409, "too_many_tokens")
    page = (await ana.get(f"{TOKENS}?limit=2&offset=1")).json()
    assert (page["total"], [item["name"] for item in page["items"]]) == (100, ["n98", "n97"])


async def test_a_request_sent_again(start_platform: Start, database_url: str | None) -> None:
    """With the same key it returns the same token, even at the limit; a revoked one never comes back."""
    running = await started(start_platform, env={"DATABASE_URL": database_url})
    # Operators copy a home's secrets to other machines after the first start.
    assert (running.platform.settings.home / "secrets" / "access-token-keys").exists()
    ana, bob = await running.user("ana"), await running.user("bob")
    body = {
        "name": "script",
        "scopes": ["manage"],
        "expires_at": "2999-01-01T00:00:00Z",
        "idempotency_key": "k1",
    }
    answers = await asyncio.gather(*(ana.post(TOKENS, json=body) for _ in range(3)))
    assert {answer.status for answer in answers} == {201}
    first = answers[0].json()
    assert [answer.json() for answer in answers] == [first] * 3
    repeated = await audited(running.platform, "access_token.repeated")
    assert [(one.target_id, one.actor_id) for one in repeated] == [(str(first["id"]), ana.user["id"])] * 2
    program = Actor(running, first["token"], first)
    assert (await program.get(WHO)).status == 200
    for change in ({"name": "other"}, {"scopes": ["tools"]}, {"expires_at": None}):
        differing = await ana.post(TOKENS, json=body | change)
        assert (differing.status, differing.json()["code"]) == (409, "idempotency_key_used")
    for actor, change in ((bob, {}), (ana, {"idempotency_key": "k2"})):
        assert (await actor.post(TOKENS, json=body | change)).json()["token"] != first["token"]
    for n in range(98):
        await ana.post(TOKENS, json={"name": f"n{n}"})
    assert (await ana.post(TOKENS, json={"name": "one too many"})).status == 409
    assert (await ana.post(TOKENS, json=body)).json() == first
    assert (await ana.delete(f"{TOKENS}/{first['id']}")).status == 204
    again = (await ana.post(TOKENS, json=body)).json()
    assert (again["id"] != first["id"], again["token"] != first["token"]) == (True, True)
    await refused(program)


async def test_last_use_survives_the_process(start_platform: Start) -> None:
    """Uses are written together; an earlier time never takes the place of a later one."""
    running, other = await started(start_platform), await started(start_platform)
    ana = await running.user("ana")
    program = await new_program(ana)
    await Actor(other, program.token).get(WHO)
    await program.get(WHO)
    last = (await ana.get(TOKENS)).json()["items"][0]["last_used_at"]
    there = Actor(other, ana.token)
    assert (await there.get(TOKENS)).json()["items"][0]["last_used_at"] == last


async def test_the_account_is_deleted(start_platform: Start, database_url: str | None) -> None:
    """Its tokens are refused at once, and removed; others still work. A token can't delete an account."""
    running = await start_platform("access_tokens", EchoPlugin, env={"DATABASE_URL": database_url})
    keys = []
    people = [await running.user(), await running.user()]
    for one in people:
        body = {"name": "robot", "scopes": ["manage"]}
        made = await one.post(TOKENS, json=body)
        assert made.status == 201, made.body
        keys.append(Actor(running, made.json()["token"]))
    assert (await keys[0].delete("/v1/auth/me", json={"password": people[0].password})).status == 403
    assert [(await key.get(WHO)).status for key in keys] == [200, 200]
    assert (await deletion(running, people[0])).status == 202
    assert [(await key.get(WHO)).status for key in keys] == [401, 200]
    owners = text("SELECT account_id FROM access_tokens_token")
    left = await running.platform.database.read(lambda session: list(session.scalars(owners)))
    assert left == [people[1].user["id"]]
