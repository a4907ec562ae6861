"""The plugin for Git repositories."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.source_git.program import GIT_CHILDREN, open_children
from builtin_plugins.source_git.repository import GIT
from builtin_plugins.source_git.settings import SourceGitSettings
from builtin_plugins.sources.api import SourceKind
from kernel.sdk import Children, Plugin, Resource, hookimpl


class SourceGitPlugin(Plugin):
    """Brings the kind `git`."""

    name = "source_git"
    version = "0.1.0"
    description = "Git repositories as sources of knowledge bases"
    author = "Platform"
    requires = ("sources",)

    @hookimpl
    def register_settings(self) -> type[SourceGitSettings]:
        return SourceGitSettings

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Children]]:
        return [Resource(GIT_CHILDREN, open_children)]

    @hookimpl
    def register_sources(self) -> Sequence[SourceKind]:
        return [GIT]
