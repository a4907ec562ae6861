"""Settings of the news plugin."""

from __future__ import annotations

import re
from typing import ClassVar
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from kernel.sdk import Settings, env

_FEED = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]{0,62})=(?P<url>\S+)")
_MOST_FEEDS = 50


class NewsSettings(Settings):
    """Which feeds are read, and how many of their items are kept."""

    env_prefix: ClassVar[str] = "NEWS_"
    configurable: ClassVar[frozenset[str]] = frozenset({"feeds", "max_items", "keep_items"})

    feeds: str = Field(
        "",
        max_length=20_000,
        validation_alias=env("NEWS_FEEDS"),
        description="RSS and Atom feeds to read, as NAME=URL separated by spaces or commas; none by default.",
    )
    max_items: int = Field(
        10,
        ge=1,
        le=200,
        validation_alias=env("NEWS_MAX_ITEMS"),
        description="Newest items that each collection takes from a feed.",
    )
    keep_items: int = Field(
        500,
        ge=1,
        le=10_000,
        validation_alias=env("NEWS_KEEP_ITEMS"),
        description="Items of each feed that are kept; older ones are deleted.",
    )

    @field_validator("feeds")
    @classmethod
    def _readable(cls, value: str) -> str:
        read_feeds(value)
        return value

    @property
    def by_name(self) -> dict[str, str]:
        """The address of each feed."""
        return read_feeds(self.feeds)


def read_feeds(text: str) -> dict[str, str]:
    """Addresses by name. Raises ValueError for what is not NAME=URL."""
    addresses: dict[str, str] = {}
    for part in re.split(
        r"(?<![\s,])[\s,]++(?=[A-Za-z0-9][\w.-]{0,62}=https?://)|\s+", text.strip().strip(",")
    ):
        if not part:
            continue
        match = _FEED.fullmatch(part.strip(","))
        if match is None or urlsplit(match["url"]).scheme not in ("http", "https"):
            raise ValueError(f"'{part[:80]}' is not NAME=URL with an http or https address")
        if match["name"] in addresses:
            raise ValueError(f"the feed '{match['name']}' is listed twice")
        addresses[match["name"]] = match["url"]
    if len(addresses) > _MOST_FEEDS:
        raise ValueError(f"at most {_MOST_FEEDS} feeds can be read")
    return addresses
