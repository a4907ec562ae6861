"""What commands know of a plugin."""

from __future__ import annotations

from dataclasses import dataclass, field


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
