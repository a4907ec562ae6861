"""Who may call which action: every access, by every method, as everybody."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from kernel.sdk import (
    ADMIN,
    AUTHENTICATED,
    PUBLIC,
    Action,
    Context,
    Permission,
    Plugin,
    Principal,
    hookimpl,
    permission,
)
from kernel.sdk.accounts import TOKENS, Decision
from kernel.sdk.http import Access
from kernel.testing import Actor, Running, Start, platforms
from tests.builtin_plugins.plugin_registry.registry_support import NoParameters

OWN = "plugin_registry"
EVERYBODY = Permission("doors.everybody", "Pass.", granted_to="user")
STAFF = Permission("doors.staff", "Pass the staff's door.")
ACCESSES = {
    "public": PUBLIC,
    "authenticated": AUTHENTICATED,
    "everybody": permission(EVERYBODY),
    "staff": permission(STAFF),
    "admin": ADMIN,
}
ACTORS = ("anonymous", "bad token", "user", "admin", "service")
# Who is admitted; the others are 401 without a token that holds, and 403 with one.
ADMITTED = {
    "public": {"anonymous", "user", "admin", "service"},
    "authenticated": {"user", "admin", "service"},
    "everybody": {"user", "admin", "service"},
    "staff": {"admin", "service"},
    "admin": {"admin"},
}


async def passed(ctx: Context, _wanted: NoParameters) -> str:
    return f"secret for {ctx.principal.role}"


class Doors(Plugin):
    """An action for each access, once read-only and once not; only what is read-only may be public."""

    name = "doors"

    @hookimpl
    def register_permissions(self) -> Sequence[Permission]:
        return [EVERYBODY, STAFF]

    @hookimpl
    def register_actions(self) -> Sequence[Action]:
        reads = [self._action(f"read-{name}", access, True) for name, access in ACCESSES.items()]
        return reads + [
            self._action(f"write-{name}", access, False)
            for name, access in ACCESSES.items()
            if name != "public"
        ]

    def _action(self, name: str, access: Access, read_only: bool) -> Action:
        return Action(name, "Opens.", NoParameters, passed, access=access, read_only=read_only)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def actors(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Actor]]:
    home: Path = tmp_path_factory.mktemp("doors")
    async with platforms(home) as start:
        running: Running = await start(OWN, Doors)
        yield {
            "anonymous": running.anonymous,
            "bad token": Actor(running, "not.a.token"),
            "user": await running.user(),
            "admin": await running.user(role="admin"),
            "service": Actor(running, running.platform.resource(TOKENS).mint_service("robot", 1)),
        }


def expected(method: str, kind: str, access: str, actor: str) -> int:
    if actor == "bad token":
        return 401
    if method == "GET" and kind == "write":
        return 404
    if actor == "anonymous" and (method == "POST" or access != "public"):
        return 401
    return 200 if actor in ADMITTED[access] else 403


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("actor", ACTORS)
@pytest.mark.parametrize(
    ("kind", "access"),
    [("read", name) for name in ACCESSES] + [("write", name) for name in ACCESSES if name != "public"],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_access(actors: dict[str, Actor], method: str, kind: str, access: str, actor: str) -> None:
    """Method × kind × access × caller; nobody but the admitted sees what the action answers."""
    answer = await actors[actor].request(method, f"/v1/plugins/doors/actions/{kind}-{access}")
    assert answer.status == expected(method, kind, access, actor), answer.body
    assert (b"secret" in answer.body) is (answer.status == 200)


class Careless(Plugin):
    """Declares one action that does not hold."""

    name = "careless"

    def __init__(self, access: Access) -> None:
        self._access = access

    @hookimpl
    def register_actions(self) -> Sequence[Action]:
        return [Action("act", "Acts.", NoParameters, passed, access=self._access)]


@pytest.mark.parametrize(
    ("access", "named"), [(PUBLIC, "not read-only"), (permission("careless.gone"), "careless.gone")]
)
async def test_bad_declaration_is_refused(start_platform: Start, access: Access, named: str) -> None:
    """A public action that writes, or a permission that nobody declares, takes the plugin out of service."""
    running = await start_platform(OWN, Careless(access))
    record = (await running.anonymous.get("/v1/plugins/careless")).json()
    assert record["status"] == "error" and named in record["reason"] and "'act'" in record["reason"]
    user = await running.user(role="admin")
    assert (await user.post("/v1/plugins/careless/actions/act")).status == 404


class Judge(Plugin):
    """Vetoes one access, once it has made up its mind."""

    name = "judge"
    vetoed = ""

    @hookimpl
    def decide_access(self, principal: Principal, access: Access) -> Decision | None:
        return Decision.DENY if str(access) == self.vetoed else None


@pytest.mark.parametrize(
    ("vetoed", "action"), [("public", "public"), ("authenticated", "authenticated"), (STAFF.key, "staff")]
)
async def test_veto(start_platform: Start, vetoed: str, action: str) -> None:
    """A plugin's veto of an access counts for actions that declare it."""
    judge = Judge()
    running = await start_platform(OWN, Doors, judge)
    admin = await running.user(role="admin")
    assert (await admin.get(f"/v1/plugins/doors/actions/read-{action}")).status == 200
    judge.vetoed = vetoed
    assert (await admin.get(f"/v1/plugins/doors/actions/read-{action}")).status == 403
