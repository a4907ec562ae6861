"""The reader of feeds, which the package of `source_feed` brings; that plugin need not run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from kernel.sdk import Resource, ResourceKey

if TYPE_CHECKING:
    from builtin_plugins.source_feed.api import FeedReader

READER: ResourceKey[FeedReader] = ResourceKey("news.reader")


def readers() -> Sequence[Resource[FeedReader]]:
    """The resource `READER`, if it can be opened."""
    try:
        from builtin_plugins.source_feed.api import open_reader
    except ModuleNotFoundError:  # not installed: no feed can be read
        return []
    return [Resource(READER, partial(open_reader, name="news"))]
