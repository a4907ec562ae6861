"""What commands know about plugins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from kernel.platform import Platform
    from kernel.plugins import PluginRecord


@dataclass(frozen=True)
class Shown:
    """A plugin as the commands show it."""

    name: str
    version: str
    status: str
    reason: str | None
    distribution: str | None
    description: str
    place: str | None = None
    requires: tuple[str, ...] = ()
    hooks: list[str] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    enable_with: str | None = None


async def disabled_plugins(platform: Platform, *, quiet: bool = False) -> Mapping[str, str]:
    """The plugins that are disabled in the database, with the reason. Their records say `loaded`.

    If that is unknown, print a warning, unless `quiet`.
    """
    from cli import console, running
    from kernel import hookspecs
    from kernel.errors import ANY_ERROR

    def ask(session: Session | None) -> Mapping[str, str]:
        found = platform.hooks.ask_now(hookspecs.find_disabled_plugins, platform=platform, session=session)
        return found or {}

    try:
        if not has_database(platform):
            return ask(None)
        with running.private_files():
            return await platform.database.read(ask)
    except ANY_ERROR as error:  # boundary: the database, or another author's plugin
        if not quiet:
            console.warn(f"can't find out which plugins are disabled: {type(error).__name__}")
        return {}


def has_database(platform: Platform) -> bool:
    """Whether there is a database: reading must not create one."""
    from sqlalchemy.engine import make_url

    return not platform.database.is_sqlite or Path(make_url(platform.database.url).database or "").is_file()


def variables_of(record: PluginRecord) -> list[str]:
    """The environment variables of a loaded plugin's settings."""
    declare = getattr(record.instance, "register_settings", None)
    cls = declare() if declare else None
    return [names[0] for names in cls.env_names().values()] if cls else []
