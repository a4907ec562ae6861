"""Hooks on the way of a request, and what becomes of one that fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import jwt
import pytest
import typer
from aiohttp import web
from sqlalchemy import text

from kernel.db.engine import Database
from kernel.hooks import hookspecs
from kernel.libs.asyncpg_connections import DatabaseUnreachable
from kernel.plugins.declarations import DECLARATIONS
from kernel.sdk import (
    AUTHENTICATED,
    PLUGIN_STATES,
    Context,
    Forbidden,
    Permission,
    Plugin,
    Principal,
    RouteTable,
    Unauthorized,
    hookimpl,
)
from kernel.sdk.accounts import Decision
from kernel.sdk.http import Access
from kernel.testing import Start
from tests.fakes.echo import EchoPlugin
from tests.fakes.processes import free_port


class ApiKeys(Plugin):
    """Another scheme: `Key <name>`."""

    name = "api_keys"

    @hookimpl
    async def identify_actor(self, authorization: str | None) -> Principal | None:
        scheme, _, key = (authorization or "").partition(" ")
        if scheme != "Key":
            return None
        if key == "forged":
            raise Unauthorized("this key was revoked")
        return Principal("service", f"key:{key}", username=key, role="service")


class TestIdentifyActor:
    async def test_hook_identify_actor(self, start_platform: Start) -> None:
        """A plugin brings its own scheme; what is not its kind goes on to the kernel."""
        running = await start_platform(ApiKeys, EchoPlugin)
        ana = await running.user("ana")

        async def get(authorization: str) -> Any:
            return await running.anonymous.get("/v1/echo/open", headers={"Authorization": authorization})

        assert (await get("Key indexer")).json()["subject"] == "key:indexer"
        assert (await get(f"Bearer {ana.token}")).json()["subject"] == str(ana.user["id"])
        assert (await running.anonymous.get("/v1/echo/open")).json()["kind"] == "anonymous"
        refused = await get("Key forged")
        assert (refused.status, refused.detail) == (401, "this key was revoked")
        assert (await get("Digest x")).status == 401

    async def test_one_that_fails(self, start_platform: Start) -> None:
        """A scheme that fails is passed over and reported: tokens of the platform still hold."""

        class Broken(Plugin):
            name = "broken"

            @hookimpl
            def identify_actor(self, authorization: str | None) -> Principal | None:
                raise KeyError("keys")

        running = await start_platform(Broken, EchoPlugin)
        ana = await running.user("ana")
        assert (await ana.get("/v1/echo/private")).status == 200
        assert (await running.anonymous.get("/health")).status == 200
        headers = {"Authorization": "Key x"}
        assert (await running.anonymous.get("/v1/echo/open", headers=headers)).status == 401
        problems = running.platform.resource(PLUGIN_STATES).records["broken"].failures
        assert problems[0] == "identify_actor raised KeyError: 'keys'"
        assert len(problems) <= 20

    @pytest.mark.parametrize("answer", [True, "ana"])
    async def test_one_that_answers_something_else(self, start_platform: Start, answer: Any) -> None:
        """Neither a name nor True is a principal: it is reported, and everybody is served as without it."""

        class Careless(Plugin):
            name = "careless"

            @hookimpl
            def identify_actor(self) -> Any:
                return answer

        running = await start_platform(Careless, EchoPlugin)
        ana = await running.user("ana")
        assert (await ana.get("/v1/echo/private")).json()["subject"] == str(ana.user["id"])
        health = (await running.anonymous.get("/health")).json()
        told = f"identify_actor returned a {type(answer).__name__}; return Principal or None"
        assert health["plugins"]["careless"]["reason"].startswith(told)

    @pytest.mark.parametrize("sent", ["Key x", "Bearer x"])
    async def test_one_that_never_answers(
        self, start_platform: Start, monkeypatch: pytest.MonkeyPatch, sent: str
    ) -> None:
        """It may be the one that knows the credential: 503, since after a 401 a client would drop it."""

        class Waiting(Plugin):
            name = "waiting"

            @hookimpl
            async def identify_actor(self, authorization: str | None) -> Principal | None:
                if authorization is not None:
                    await asyncio.Event().wait()
                return None

        running = await start_platform(Waiting, EchoPlugin)
        monkeypatch.setattr(hookspecs.identify_actor, "seconds", 0.01)
        refused = await running.anonymous.get("/v1/echo/open", headers={"Authorization": sent})
        assert (refused.status, refused.json()["code"]) == (503, "unavailable")
        assert "'waiting'" in refused.detail and "identify_actor" in refused.detail
        assert (await running.anonymous.get("/v1/echo/open")).status == 200

    async def test_one_that_never_answers_and_who_knows_the_credential(
        self, start_platform: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A bad credential that another one knows is a 401 all the same: its client has to get a new one.
        Whoever sends another header, which only the silent plugin reads, may be known to it.
        """

        class Waiting(Plugin):
            name = "waiting"

            @hookimpl
            async def identify_actor(
                self, request: web.Request, authorization: str | None
            ) -> Principal | None:
                if authorization is not None or "X-Key" in request.headers:
                    await asyncio.Event().wait()
                return None

        class Keys(Plugin):
            name = "keys"

            @hookimpl
            def identify_actor(self, authorization: str | None) -> Principal | None:
                if authorization == "Key forged":
                    raise Unauthorized("this key was revoked")
                return None

        secret = "a secret of at least thirty-two bytes, for tests"
        running = await start_platform(Keys, Waiting, EchoPlugin, env={"JWT_SECRET": secret})
        claims = jwt.decode(str((await running.user("ana")).token), secret, ["HS256"])
        expired = jwt.encode({**claims, "exp": claims["iat"] - 1}, secret, "HS256")
        monkeypatch.setattr(hookspecs.identify_actor, "seconds", 0.01)
        for sent, told in ((f"Bearer {expired}", "expired"), ("Key forged", "revoked")):
            refused = await running.anonymous.get("/v1/echo/open", headers={"Authorization": sent})
            assert refused.status == 401 and told in refused.detail
        assert (await running.anonymous.get("/v1/echo/private")).status == 401
        assert (await running.anonymous.get("/v1/echo/open", headers={"X-Key": "x"})).status == 200
        refused = await running.anonymous.get("/v1/echo/private", headers={"X-Key": "x"})
        assert refused.status == 503 and "'waiting'" in refused.detail

    async def test_one_whose_server_is_away(self, start_platform: Start) -> None:
        """A connection of its own that is lost is its own fault; a database that is away is a 503."""
        database = Database(f"postgresql+asyncpg://nobody@127.0.0.1:{free_port()}/none")

        class Directory(Plugin):
            name = "directory"

            @hookimpl
            async def identify_actor(self, authorization: str | None) -> Principal | None:
                if authorization == "Stored key":
                    await database.read(lambda session: session.scalar(text("SELECT 1")))
                raise ConnectionResetError(104, "Connection reset by peer")

        running = await start_platform(Directory, EchoPlugin)
        ana = await running.user("ana")
        assert (await ana.get("/v1/echo/private")).status == 200
        problems = running.platform.resource(PLUGIN_STATES).records["directory"].failures
        assert problems[0].startswith("identify_actor raised ConnectionResetError")
        headers = {"Authorization": "Stored key"}
        assert (await running.anonymous.get("/v1/echo/open", headers=headers)).status == 503
        await database.close()


async def test_a_question_that_nobody_answers_in_time(start_platform: Start) -> None:
    """Where the request depends on it, it is 503 with the plugin's name, and may be sent again."""

    class Late(Plugin):
        name = "late"

        @hookimpl
        async def find_memberships(self) -> Any:
            raise TimeoutError("no answer within 30 s")

    running = await start_platform(Late, EchoPlugin)
    admin = await running.user("ada", role="admin")
    refused = await admin.get("/v1/auth/users")
    assert refused.status == 503
    assert "'late'" in refused.detail and "find_memberships" in refused.detail


class Judge(Plugin):
    """Says what the test wants of every access."""

    name = "judge"

    def __init__(self, verdict: Any = None) -> None:
        self.verdict = verdict
        self.asked: list[tuple[str, str, dict[str, Any]]] = []

    @hookimpl
    async def decide_access(
        self, ctx: Context, principal: Principal, access: Access, params: dict[str, Any]
    ) -> Decision | None:
        self.asked.append((ctx.request.path, str(access), params))
        if isinstance(self.verdict, BaseException):
            raise self.verdict
        return self.verdict  # type: ignore[no-any-return]


class TestDecideAccess:
    @pytest.mark.parametrize(
        ("verdict", "private", "withheld", "public"),
        [
            (None, 200, 403, 200),
            (Decision.ALLOW, 200, 200, 200),
            (Decision.DENY, 403, 403, 403),
            (Forbidden("not on Sundays"), 403, 403, 403),
            (RuntimeError("broken"), 500, 500, 200),
            (True, 500, 500, 200),
        ],
    )
    async def test_hook_decide_access(
        self, start_platform: Start, verdict: Any, private: int, withheld: int, public: int
    ) -> None:
        """One grant is enough, one veto too; a judge that fails closes all that is not open to anyone."""
        judge = Judge()
        running = await start_platform(judge, EchoPlugin)
        ana = await running.user("ana")
        judge.verdict = verdict
        paths = ("/v1/echo/private", "/v1/echo/withheld", "/v1/echo/open")
        assert [(await ana.get(path)).status for path in paths] == [private, withheld, public]

    async def test_one_that_fails_is_named(self, start_platform: Start) -> None:
        """The refusal says whose fault it is and what to do, and `/health` that the plugin fails; a caller
        without a token is asked for one all the same.
        """
        judge = Judge()
        running = await start_platform(judge, EchoPlugin)
        ana = await running.user("ana")
        judge.verdict = KeyError("token=hunter2")
        refused = await ana.get("/v1/echo/private")
        assert (refused.status, refused.json()["code"]) == (500, "plugin_failed")
        assert "PLATFORM_PLUGINS_DISABLED=judge" in refused.detail
        assert (await running.anonymous.get("/v1/echo/private")).status == 401
        health = (await running.anonymous.get("/health")).json()
        told = "decide_access raised KeyError; the server's log says why"
        assert health["plugins"]["judge"] == {"status": "loaded", "reason": told}
        assert health["checks"]["plugins"] == f"unhealthy: judge: {told}"
        assert health["status"] == "degraded" and "hunter2" not in str(health)

    async def test_one_that_is_too_late(self, start_platform: Start) -> None:
        """503: its store may have stalled, and once it is back, the same request is decided."""
        judge = Judge()
        running = await start_platform(judge, EchoPlugin)
        ana = await running.user("ana")
        judge.verdict = TimeoutError("no answer within 30 s")
        refused = await ana.get("/v1/echo/private")
        assert refused.status == 503
        assert "'judge'" in refused.detail and "decide_access" in refused.detail
        assert (await running.anonymous.get("/v1/echo/private")).status == 401
        judge.verdict = None
        assert (await ana.get("/v1/echo/private")).status == 200

    async def test_one_whose_database_is_away(self, start_platform: Start) -> None:
        judge = Judge()
        running = await start_platform(judge, EchoPlugin)
        ana = await running.user("ana")
        judge.verdict = DatabaseUnreachable("no route to host")
        assert (await ana.get("/v1/echo/private")).status == 503
        assert (await running.anonymous.get("/health")).json()["status"] == "healthy"

    async def test_what_it_is_told(self, start_platform: Start) -> None:
        """It hears the access and the parsed parameters of the path."""
        judge = Judge()
        running = await start_platform(judge, EchoPlugin)
        await running.anonymous.get("/v1/echo/items/7")
        await running.anonymous.get("/v1/echo/withheld")
        assert judge.asked == [
            ("/v1/echo/items/7", "public", {"item_id": 7}),
            ("/v1/echo/withheld", "echo.withheld", {}),
        ]

    async def test_anonymous_grants(self, start_platform: Start) -> None:
        """A plugin may let somebody in without a token, such as a published chat."""
        running = await start_platform(Judge(Decision.ALLOW), EchoPlugin)
        assert (await running.anonymous.get("/v1/echo/private")).status == 200


class TestDeclaredThings:
    async def test_hook_register_permissions_and_routes(self, start_platform: Start) -> None:
        """Permissions that a plugin declares can be named by its routes, and are listed."""

        class Notes(Plugin):
            name = "notes"

            @hookimpl
            def register_permissions(self) -> list[Permission]:
                return [Permission("notes.read", "Read notes.", granted_to="user")]

            @hookimpl
            def register_routes(self) -> list[RouteTable]:
                table = RouteTable("Notes")

                @table.get("/v1/notes", access=AUTHENTICATED, returns=list[str])
                async def index(ctx: Context) -> list[str]:
                    """List notes."""
                    return ["buy milk"]

                return [table]

        running = await start_platform(Notes)
        ana = await running.user()
        assert (await ana.get("/v1/notes")).json() == ["buy milk"]
        assert "notes.read" in running.platform.permissions

    async def test_hook_register_commands(self, start_platform: Start) -> None:
        """Command groups reach the command line as they were declared."""
        group = typer.Typer()

        class Commands(Plugin):
            name = "commands"

            @hookimpl
            def register_commands(self) -> Sequence[tuple[str, typer.Typer]]:
                return [("notes", group)]

        running = await start_platform(Commands)
        declared = dict(running.platform.resource(DECLARATIONS).of(hookspecs.register_commands))
        assert declared["commands"] == [("notes", group)]

    async def test_hook_on_start(self, start_platform: Start) -> None:
        """`on_start` is called once, in loading order, with everything open."""
        seen: list[tuple[str, bool]] = []

        class Second(Plugin):
            name = "a_second"
            requires = ("b_first",)

            @hookimpl
            def on_start(self, platform: Any) -> None:
                seen.append((self.name, "first" in [r for r, _ in seen] or bool(seen)))

        class First(Plugin):
            name = "b_first"

            @hookimpl
            async def on_start(self, platform: Any) -> None:
                await platform.database.ping()
                seen.append((self.name, False))

        await start_platform(Second, First)
        assert seen == [("b_first", False), ("a_second", True)]


async def test_a_hook_that_is_switched_off(start_platform: Start, caplog: pytest.LogCaptureFixture) -> None:
    """A plugin that was switched off is not asked any more, and is asked again when it is back."""
    caplog.set_level(logging.ERROR)
    judge = Judge()
    running = await start_platform(judge, EchoPlugin)
    ana = await running.user()
    judge.verdict = Decision.DENY
    running.platform.resource(PLUGIN_STATES).switch_off(["judge"])
    assert (await ana.get("/v1/echo/private")).status == 200
    running.platform.resource(PLUGIN_STATES).switch_off([])
    assert (await ana.get("/v1/echo/private")).status == 403
