"""The plugin for folders of the server."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.source_folder.kind import FOLDER
from builtin_plugins.source_folder.settings import SourceFolderSettings
from builtin_plugins.sources.api import SourceKind
from kernel.sdk import Plugin, hookimpl


class SourceFolderPlugin(Plugin):
    """Brings the kind `folder`."""

    name = "source_folder"
    version = "0.1.0"
    description = "Folders of the server as sources of knowledge bases"
    author = "Platform"
    requires = ("sources",)

    @hookimpl
    def register_settings(self) -> type[SourceFolderSettings]:
        return SourceFolderSettings

    @hookimpl
    def register_sources(self) -> Sequence[SourceKind]:
        return [FOLDER]
