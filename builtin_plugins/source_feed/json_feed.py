"""JSON feeds (jsonfeed.org, version 1.1) as what feedparser makes of others."""

from __future__ import annotations

import html
import json
import time
from datetime import UTC, datetime
from typing import Any, Final

_VERSION: Final = "https://jsonfeed.org/version/"


def read_json_feed(content: bytes) -> tuple[str, list[dict[str, Any]]]:
    """The title and the entries. Raises ValueError for what is no such feed."""
    try:
        feed = json.loads(content.lstrip(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError):
        raise ValueError("it is no JSON") from None
    if not str(feed.get("version", "")).startswith(_VERSION) or not isinstance(feed.get("items"), list):
        raise ValueError("it is no JSON feed")
    return str(feed.get("title") or ""), [_entry(one) for one in feed["items"] if isinstance(one, dict)]


def _entry(item: dict[str, Any]) -> dict[str, Any]:
    markup = item.get("content_html") or html.escape(str(item.get("content_text") or ""), quote=False)
    return {
        "id": str(item.get("id") or ""),
        "title": html.escape(str(item.get("title") or ""), quote=False),
        "link": str(item.get("url") or item.get("external_url") or ""),
        "summary": str(markup or item.get("summary") or ""),
        "published_parsed": _moment(item.get("date_published") or item.get("date_modified")),
    }


def _moment(text: object) -> time.struct_time | None:
    try:
        moment = datetime.fromisoformat(str(text))
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).utctimetuple()
    except (ValueError, OverflowError):  # or no such moment in UTC
        return None
