"""The documents of the API: OpenAPI 3.1, the pages that show it, and the root that leads to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kernel.sdk import PLATFORM_VERSION, Plugin, RouteTable, hookimpl
from kernel.sdk.http import BoundRoute, Serve

from . import hookspecs, root
from .serving import docs_routes

if TYPE_CHECKING:
    from typer import Typer


class ApiDocsPlugin(Plugin):
    """Describes the routes of the gateway and of each service, from what they declare."""

    name = "api_docs"
    version = PLATFORM_VERSION
    description = "OpenAPI documents, Swagger UI and ReDoc"
    author = "Platform"
    essential = True

    @hookimpl
    def register_commands(self) -> Sequence[tuple[str, Typer]]:
        from .commands import COMMANDS  # asked by the terminal alone

        return COMMANDS

    @hookimpl
    def register_hookspecs(self) -> Sequence[object]:
        return [hookspecs]

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [root.routes]

    @hookimpl
    def offer_pages(self, endpoints: Sequence[BoundRoute], title: str) -> Mapping[str, Serve]:
        return docs_routes(endpoints, title)
