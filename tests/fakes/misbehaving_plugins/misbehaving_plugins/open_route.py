"""Has a route that does not say who may use it."""

from typing import Any

from kernel.sdk import Context, Plugin, RouteTable, hookimpl

routes = RouteTable("Open")


@routes.get("/v1/open")
async def read(_ctx: Context) -> Any:
    """Read everything."""
    return "everything"


class OpenRoute(Plugin):
    name = "open_route"

    @hookimpl
    def register_routes(self) -> list[RouteTable]:
        return [routes]
