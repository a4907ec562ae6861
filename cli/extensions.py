"""Command groups that plugins bring; a broken plugin only loses its own."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import typer

if TYPE_CHECKING:
    from kernel.platform import Platform

T = TypeVar("T")

log = logging.getLogger("platform.cli")


def on_platform(work: Callable[[Platform], Awaitable[T]]) -> T:
    """Run a plugin command's work on the platform; this is its `ctx.obj`."""
    from cli import running

    async def call() -> T:
        async with running.stored_platform() as platform:
            running.refuse_behind(platform)
            return await work(platform)

    return running.run(call())


@dataclass(frozen=True)
class PluginCommand:
    """A command group that a plugin declares; `built_in` ones can't be replaced by others."""

    name: str
    group: typer.Typer
    built_in: bool


def commands_of_plugins() -> list[PluginCommand]:
    """The groups of all plugins that load, built-in plugins first: of two with the same name, the first
    counts.
    """
    from cli import running
    from kernel.errors import StartupError

    try:
        commands = running.run(_collect())
    except StartupError as error:
        log.warning("the commands of plugins are not available: %s", error)
        return []
    return sorted(commands, key=lambda command: not command.built_in)


async def _collect() -> list[PluginCommand]:
    from cli import running
    from kernel.hooks import hookspecs
    from kernel.plugins.declarations import DECLARATIONS

    commands: list[PluginCommand] = []
    async with running.explained_platform() as platform:
        own = {record.name for record in platform.plugins if record.built_in}
        for plugin, groups in platform.resource(DECLARATIONS).of(hookspecs.register_commands):
            for name, group in groups:
                if isinstance(group, typer.Typer):
                    commands.append(PluginCommand(name, group, plugin in own))
                else:
                    log.warning("plugin %s: its command %r is not a typer.Typer", plugin, name)
    return commands
