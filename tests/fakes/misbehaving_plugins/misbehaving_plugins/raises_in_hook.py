"""Raises when it is asked for its routes."""

from typing import Any

from kernel.sdk import Plugin, hookimpl


class Raises(Plugin):
    name = "raises_in_hook"

    @hookimpl
    def register_routes(self) -> Any:
        raise KeyError("routes")
