"""What backups and bundles of plugins ask of other plugins."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kernel.sdk import hookspec

if TYPE_CHECKING:
    from kernel.sdk import Caller, Platform


@hookspec.first
def switch_plugin(caller: Caller, plugin: str, on: bool) -> bool | None:
    """Enable or disable a plugin permanently, in every process; True once it is done.

    None means that this plugin does not enable or disable others. Raises NotFound for an unknown plugin,
    Conflict where others need it or it needs others.
    """


@hookspec.all(failing="skip")
def find_backup_folders(platform: Platform) -> Mapping[str, Path] | None:
    """Folders whose files belong in a backup and can't be recreated, each under a name of its own."""


@hookspec.all(failing="skip")
def find_sample_answers(platform: Platform) -> Mapping[str, str] | None:
    """Questions with exact answers that depend on stored data alone, to check a restored copy with."""
