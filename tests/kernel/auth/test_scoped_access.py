"""Routes with a permission of one organization: whom the kernel itself lets pass (`or_admin`, `or_self`)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kernel.sdk import Context, Message, Permission, Plugin, RouteTable, hookimpl, permission
from kernel.testing import Start

KEY = Permission("club.enter", "Enter a club.", granted_to="user", scope="organization")
routes = RouteTable("Clubs")


@routes.get("/v1/clubs/{club_id:int}", access=permission(KEY, within="club_id"), returns=Message)
async def holders(ctx: Context, club_id: int) -> Message:
    """For holders."""
    return Message(message="in")


@routes.post("/v1/clubs/{club_id:int}", access=permission(KEY, within="club_id", or_admin=True))
async def holders_and_admins(ctx: Context, club_id: int) -> Message:
    """For holders and administrators."""
    return Message(message="in")


@routes.delete(
    "/v1/clubs/{club_id:int}/{user_id:int}", access=permission(KEY, within="club_id", or_self="user_id")
)
async def holders_and_oneself(ctx: Context, club_id: int, user_id: int) -> Message:
    """For holders and the account itself."""
    return Message(message="in")


class Clubs(Plugin):
    """A plugin with an organization's key, while no plugin knows organizations."""

    name = "clubs"

    @hookimpl
    def register_permissions(self) -> Sequence[Permission]:
        return [KEY]

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [routes]


async def test_who_passes(start_platform: Start) -> None:
    """Nobody holds such a key without a plugin that says so; administrators and oneself where it is said."""
    running = await start_platform(Clubs)
    root, ann = await running.user(role="admin"), await running.user()
    place = "/v1/clubs/1"
    assert [(await one.get(place)).status for one in (root, ann, running.anonymous)] == [403, 403, 401]
    assert [(await one.post(place)).status for one in (root, ann, running.anonymous)] == [200, 403, 401]
    own = f"{place}/{ann.user['id']}"
    assert [(await one.delete(own)).status for one in (root, ann, running.anonymous)] == [403, 200, 401]


async def test_the_refusal_says_who_may(start_platform: Start) -> None:
    """All that is true of the route is in its refusal."""
    running = await start_platform(Clubs)
    answer = await (await running.user()).post("/v1/clubs/1")
    assert answer.detail == "This needs: permission club.enter, or instance administrators"


@pytest.mark.parametrize("path", ["/v1/clubs/{club_id:int}", "/v1/clubs/{club_id:int}/{user_id}"])
async def test_oneself_needs_a_parameter(start_platform: Start, path: str) -> None:
    """A route that lets a parameter pass which it has not, or not as an id, fails the start of its plugin."""
    wrong = RouteTable("Clubs")
    wrong.get(path, access=permission(KEY, within="club_id", or_self="user_id"))(holders)

    class WrongClubs(Clubs):
        @hookimpl
        def register_routes(self) -> Sequence[RouteTable]:
            return [wrong]

    running = await start_platform(WrongClubs)
    [record] = [one for one in running.platform.plugins if one.name == "clubs"]
    assert "user_id" in (record.reason or "")
