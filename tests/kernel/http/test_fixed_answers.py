"""Routes whose answer is fixed: made once, again when declarations change, and guarded like any other."""

from __future__ import annotations

from kernel.sdk import AUTHENTICATED, PLUGIN_STATES, RouteTable, hookimpl
from kernel.testing import Start
from tests.fakes.echo import EchoPlugin


class Counting:
    """Offers one fixed route, and counts how often its answer is made."""

    name = "counting"

    def __init__(self) -> None:
        self.made = 0

    @hookimpl
    def register_routes(self) -> list[RouteTable]:
        table = RouteTable("Counting")

        @table.get("/v1/counting", access=AUTHENTICATED, returns=int, fixed=True)
        async def count(_ctx: object) -> int:
            """How often this was made."""
            self.made += 1
            return self.made

        return [table]


async def test_made_once(start_platform: Start) -> None:
    """The handler runs once; a plugin that is switched makes the answer old, whoever asks."""
    running = await start_platform(Counting, EchoPlugin)
    user, other = await running.user(), await running.user()
    assert [(await actor.get("/v1/counting")).json() for actor in (user, other, user)] == [1, 1, 1]
    running.platform.resource(PLUGIN_STATES).switch_off(["echo"])
    assert [(await actor.get("/v1/counting")).json() for actor in (user, other)] == [2, 2]


async def test_a_kept_answer_is_guarded(start_platform: Start) -> None:
    """Callers without access get nothing, cached or not; nor does anybody once the plugin is off."""
    running = await start_platform(Counting)
    user = await running.user()
    assert (await user.get("/v1/counting")).status == 200
    assert (await running.anonymous.get("/v1/counting")).status == 401
    running.platform.resource(PLUGIN_STATES).switch_off(["counting"])
    assert (await user.get("/v1/counting")).status == 403
