"""The plugin for feeds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from builtin_plugins.source_feed.feed import FEED, READER
from builtin_plugins.source_feed.reader import FeedReader, open_reader
from builtin_plugins.sources.api import SourceKind
from kernel.sdk import Plugin, Resource, hookimpl


class SourceFeedPlugin(Plugin):
    """Brings the kind `feed`."""

    name = "source_feed"
    version = "0.1.0"
    description = "RSS, Atom and JSON feeds as sources of knowledge bases"
    author = "Platform"
    requires = ("sources",)

    @hookimpl
    def register_resources(self) -> Sequence[Resource[FeedReader]]:
        return [Resource(READER, partial(open_reader, name="source_feed"))]

    @hookimpl
    def register_sources(self) -> Sequence[SourceKind]:
        return [FEED]
