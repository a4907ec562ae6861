"""What commands such as `platformctl doctor` ask plugins about an installation, with or without a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from kernel.platform import Platform

Stage = Literal["installation", "stores", "rows", "status", "upgrade", "leaks", "reads"]


@dataclass(frozen=True)
class Finding:
    """A result: `text` says what is so, `remedy` what to do about it.

    `at` is shown as the time since then. `facts` are added to the JSON of `platformctl status`.
    """

    check: str
    status: Literal["ok", "warning", "failed"]
    text: str
    remedy: str = ""
    at: datetime | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PluginPackage:
    """What a catalog says about the plugin `name`: its pip package, and whether what it needs is compatible.

    `verdict` is ``resolved`` if it is; `failures` say why not, `requires` are names of plugins, `conflicts`
    are the (name, reason) pairs of plugins that must not be installed with it.
    """

    name: str
    package: str | None
    version_range: str | None
    tier: str | None
    verdict: str = "unknown"
    failures: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    conflicts: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True)
class Diagnostic:
    """A check that changes nothing. `examine(platform)` yields its findings; no plugin's resources are open.

    `stage` says who asks, and what it can use:

    - ``installation``: `doctor`, before it opens the database;
    - ``stores``: `doctor`; the database is open, but its tables may be behind or missing;
    - ``rows``: `doctor`; tables are up to date; ``leaks``, ``reads`` (all rows): `doctor --leaks`, all open;
    - ``status``: `status` and `support-bundle`, without the database;
    - ``upgrade``: `upgrade --check`, for what the plugin does before migrations are applied.
    """

    stage: Stage
    examine: Callable[[Platform], AsyncIterator[Finding]]
