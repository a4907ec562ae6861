"""`platformctl demo`: the main job, seen from the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernel.sdk import Plugin, hookimpl

if TYPE_CHECKING:
    from typer import Typer


class DemoPlugin(Plugin):
    """Brings a command and its sample documents; a server has nothing of it."""

    name = "demo"
    version = "0.1.0"
    description = "Shows the main job in a throw-away instance: platformctl demo"
    author = "Platform"

    @hookimpl
    def register_commands(self) -> Sequence[tuple[str, Typer]]:
        from builtin_plugins.demo.commands import COMMANDS  # asked by the terminal alone

        return COMMANDS
