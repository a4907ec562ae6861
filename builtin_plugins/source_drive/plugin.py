"""The plugin for Google Drive."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.source_drive.kind import DRIVE
from builtin_plugins.sources.api import SourceKind
from kernel.sdk import Plugin, hookimpl


class SourceDrivePlugin(Plugin):
    """Brings the kind `drive`."""

    name = "source_drive"
    version = "0.1.0"
    description = "Google Drive and its shared drives as sources; tried only with documented answers"
    author = "Platform"
    requires = ("sources",)

    @hookimpl
    def register_sources(self) -> Sequence[SourceKind]:
        return [DRIVE]
