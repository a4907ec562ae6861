"""Implements a hook that does not exist."""

from typing import Any

from kernel.sdk import Plugin, hookimpl


class Misspells(Plugin):
    name = "misspells_hook"

    @hookimpl
    def register_rotues(self) -> list[Any]:
        return []
