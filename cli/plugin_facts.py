"""What commands know of a plugin."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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


def variables_of(record: PluginRecord) -> list[str]:
    """The environment variables of a loaded plugin's settings."""
    declare = getattr(record.instance, "register_settings", None)
    cls = declare() if declare else None
    return [names[0] for names in cls.env_names().values()] if cls else []
