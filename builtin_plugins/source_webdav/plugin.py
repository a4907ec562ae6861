"""The plugin for folders on WebDAV servers."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.source_webdav.kind import WEBDAV
from builtin_plugins.sources.api import SourceKind
from kernel.sdk import Plugin, hookimpl


class SourceWebdavPlugin(Plugin):
    """Brings the kind `webdav`."""

    name = "source_webdav"
    version = "0.1.0"
    description = "Folders on WebDAV servers, such as Nextcloud, as sources of knowledge bases"
    author = "Platform"
    requires = ("sources",)

    @hookimpl
    def register_sources(self) -> Sequence[SourceKind]:
        return [WEBDAV]
