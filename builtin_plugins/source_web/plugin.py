"""The plugin for websites."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.source_web.site import WEB
from builtin_plugins.sources.api import SourceKind
from kernel.sdk import Plugin, hookimpl


class SourceWebPlugin(Plugin):
    """Brings the kind `web`."""

    name = "source_web"
    version = "0.1.0"
    description = "Websites as sources of knowledge bases"
    author = "Platform"
    requires = ("sources",)

    @hookimpl
    def register_sources(self) -> Sequence[SourceKind]:
        return [WEB]
