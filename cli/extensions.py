"""Command groups that plugins bring; a broken plugin only loses its own."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
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


def commands_of_plugins() -> dict[str, typer.Typer]:
    """The groups of all plugins that load, by name; of two with the same name, the first counts."""
    from cli import running
    from kernel.errors import StartupError

    try:
        return running.run(_collect())
    except StartupError as error:
        log.warning("the commands of plugins are not available: %s", error)
        return {}


async def _collect() -> dict[str, typer.Typer]:
    from cli import running
    from kernel import hookspecs
    from kernel.declarations import DECLARATIONS

    found: dict[str, typer.Typer] = {}
    async with running.explained_platform() as platform:
        for plugin, groups in platform.resource(DECLARATIONS).of(hookspecs.register_commands):
            for name, group in groups:
                if isinstance(group, typer.Typer):
                    found.setdefault(name, group)
                else:
                    log.warning("plugin %s: its command %r is not a typer.Typer", plugin, name)
    return found
