"""The plugin for SharePoint and OneDrive."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.source_sharepoint.kind import SHAREPOINT
from builtin_plugins.sources.api import SourceKind
from kernel.sdk import Plugin, hookimpl


class SourceSharepointPlugin(Plugin):
    """Brings the kind `sharepoint`."""

    name = "source_sharepoint"
    version = "0.1.0"
    description = "SharePoint and OneDrive as sources; tried only with documented answers"
    author = "Platform"
    requires = ("sources",)

    @hookimpl
    def register_sources(self) -> Sequence[SourceKind]:
        return [SHAREPOINT]
