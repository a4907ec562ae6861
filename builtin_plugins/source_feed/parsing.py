"""Reads an untrusted feed; runs in a child process."""

from __future__ import annotations

import calendar
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import feedparser
from lxml import html

from builtin_plugins.source_feed.json_feed import read_json_feed

_LONGEST_TEXT = 50_000
_LAST_SECOND = 253_402_300_799  # of the year 9999
_LONGEST_TITLE, _LONGEST_LINK = 500, 2_000


def read_feed(source: str, base: str, most: int) -> dict[str, Any]:
    """The title and the newest items of the feed in the file `source`; `base` is where it comes from.

    Raises ValueError for what is not a feed.
    """
    content = Path(source).read_bytes()
    if content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        title, entries = read_json_feed(content)
        return _feed_content(title, entries, most)
    document = feedparser.parse(content, response_headers={"content-location": base}, sanitize_html=False)
    if not document.version:
        raise ValueError("it is neither RSS nor Atom")
    return _feed_content(document.feed.get("title", ""), document.entries, most)


def _feed_content(title: str, entries: Iterable[Any], most: int) -> dict[str, Any]:
    items: dict[str, dict[str, Any]] = {}
    for item in sorted((_item(entry) for entry in entries), key=lambda item: -item["published"]):
        if item["title"]:
            items.setdefault(item["key"], item)  # the newest of those with the same id
    return {"title": _text(title)[:255], "items": list(items.values())[:most]}


def _item(entry: Any) -> dict[str, Any]:
    title = _text(entry.get("title", ""))
    body = _text(_body(entry))[:_LONGEST_TEXT]
    link = str(entry.get("link", ""))[:_LONGEST_LINK]
    when = entry.get("published_parsed") or entry.get("updated_parsed")
    identity = str(entry.get("id") or link or title or body)
    return {
        "key": hashlib.sha256(identity.encode(errors="replace")).hexdigest(),
        "title": (title or body[:80])[:_LONGEST_TITLE],
        "link": link if link.startswith(("http://", "https://")) else "",
        "text": body,
        "published": _seconds(when),
    }


def _body(entry: Any) -> str:
    contents = [str(part.get("value", "")) for part in entry.get("content", ())]
    return max([*contents, str(entry.get("summary", ""))], key=len)


def _text(markup: str) -> str:
    """The text of markup, without tags."""
    if "<" not in markup and "&" not in markup:
        return " ".join(markup.split())
    try:
        root = html.fromstring(f"<div>{markup}</div>")
    except (ValueError, html.etree.ParserError):
        return ""
    for hidden in root.xpath("//script|//style"):
        hidden.drop_tree()
    for block in root.xpath("//p|//br|//li|//div|//h1|//h2|//h3|//tr"):
        block.tail = "\n" + (block.tail or "")
    lines = (" ".join(line.split()) for line in root.text_content().splitlines())
    return "\n".join(line for line in lines if line)


def _seconds(when: Any) -> float:
    """Seconds since 1970; 0 for a missing or invalid date."""
    try:
        seconds = float(max(calendar.timegm(when), 0)) if when else 0.0
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return seconds if seconds <= _LAST_SECOND else 0.0
