"""Plugins that are documents rather than code, and plugins of any kind as clients see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from kernel.sdk import Action, Unit, utc_now

EntryStatus = Literal["registered", "enabled", "disabled", "error"]


@dataclass(frozen=True)
class PluginEntry:
    """One plugin of any kind.

    `reason` says why it is not active, `problem` what is wrong with an active one. `source` is where it comes
    from: ``vendored`` (part of the platform), ``package``, or the name of a `PluginSource`. `webhooks` are
    its webhook paths, without the leading ``/webhook``. `package` is pip's name for a plugin from a package.
    """

    name: str
    status: EntryStatus
    source: str
    version: str = ""
    description: str = ""
    author: str = ""
    reason: str | None = None
    problem: str | None = None
    requires: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    data_sources: tuple[str, ...] = ()
    databases: tuple[str, ...] = ()
    webhooks: tuple[str, ...] = ()
    essential: bool = False
    off_by_default: bool = False
    package: str | None = None
    registered_at: datetime = field(default_factory=utc_now)


class PluginSource(Protocol):
    """Plugins that are documents rather than code. They can be added and removed while the platform runs.

    `name` is the `source` of its entries. All methods can be called at the same time.
    """

    name: str

    def schema(self) -> Mapping[str, Any]:
        """The JSON Schema of a document."""
        ...

    async def plugins(self) -> Sequence[PluginEntry]:
        """Every plugin of this source, including refused documents, as `enabled` or `error`."""
        ...

    async def actions(self, plugin: str) -> Sequence[Action]:
        """The actions of one plugin; none for an unknown name."""
        ...

    async def install(self, document: bytes, media_type: str, *, update: bool) -> PluginEntry:
        """Store a document durably and activate it. With `update`, it replaces the installed document of the
        same name.

        Raises BadRequest (it can't be read), Unprocessable (it is not valid), Conflict (its name or something
        it claims is taken), NotFound (there is nothing to update).
        """
        ...

    def remove(self, unit: Unit, plugin: str) -> bool:
        """Delete a plugin and all that it stored, in this unit; False if nothing was stored.

        A plain function, like every unit of writing: on SQLite it runs in a thread.
        """
        ...

    async def refresh(self) -> None:
        """Check for changes now."""
        ...
