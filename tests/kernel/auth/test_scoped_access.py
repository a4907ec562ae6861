"""Routes with a permission, of one organization or of all: whom the kernel itself lets pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pytest

from kernel.sdk import Context, Message, Permission, Plugin, RouteTable, hookimpl, permission
from kernel.testing import Actor, Start

KEY = Permission("club.enter", "Enter a club.", granted_to="user", scope="organization")
GRANTS: tuple[Literal["user", "admin", "nobody"], ...] = ("user", "admin", "nobody")
KEYS = [Permission(f"club.{grant}", "Found clubs.", granted_to=grant) for grant in GRANTS]
SERVICE = "a token that services share with the platform"
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


async def founders(ctx: Context) -> Message:
    """For holders of a key of the whole platform."""
    return Message(message="in")


for key in KEYS:
    routes.get(f"/v1/founders/{key.granted_to}", access=permission(key))(founders)


class Clubs(Plugin):
    """A plugin with an organization's key, while no plugin knows organizations."""

    name = "clubs"

    @hookimpl
    def register_permissions(self) -> Sequence[Permission]:
        return [KEY, *KEYS]

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


async def test_whom_a_key_is_granted_to(start_platform: Start) -> None:
    """Every account has what users have; administrators and services also what users don't have."""
    running = await start_platform(Clubs, env={"SERVICE_SYNC_TOKEN": SERVICE})
    root, ann = await running.user(role="admin"), await running.user()

    async def passes(actor: Actor, **headers: str) -> list[int]:
        answers = [await actor.get(f"/v1/founders/{grant}", headers=headers) for grant in GRANTS]
        return [answer.status for answer in answers]

    assert await passes(ann) == [200, 403, 403]
    assert await passes(root) == [200, 200, 403]
    assert await passes(running.anonymous, **{"X-Service-Token": SERVICE}) == [200, 200, 403]
    assert await passes(running.anonymous) == [401, 401, 401]


async def test_the_refusal_says_who_may(start_platform: Start) -> None:
    running = await start_platform(Clubs)
    answer = await (await running.user()).post("/v1/clubs/1")
    assert (answer.status, answer.json()["code"]) == (403, "forbidden")
    assert "club.enter" in answer.detail and "administrators" in answer.detail


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
