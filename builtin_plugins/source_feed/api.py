"""What other plugins may import: reading a feed, and an entry as text."""

from __future__ import annotations

from builtin_plugins.source_feed.entries import entry_moment as entry_moment
from builtin_plugins.source_feed.entries import entry_text as entry_text
from builtin_plugins.source_feed.reader import FeedContent as FeedContent
from builtin_plugins.source_feed.reader import FeedReader as FeedReader
from builtin_plugins.source_feed.reader import FeedUnreadable as FeedUnreadable
from builtin_plugins.source_feed.reader import open_reader as open_reader
