"""The plugin for spaces of Confluence."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.source_confluence.kind import CONFLUENCE
from builtin_plugins.sources.api import SourceKind
from kernel.sdk import Plugin, hookimpl


class SourceConfluencePlugin(Plugin):
    """Brings the kind `confluence`."""

    name = "source_confluence"
    version = "0.1.0"
    description = "Spaces of Confluence as sources; tried only with documented answers"
    author = "Platform"
    requires = ("sources",)

    @hookimpl
    def register_sources(self) -> Sequence[SourceKind]:
        return [CONFLUENCE]
