"""An entry of a feed as a text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def entry_moment(entry: Mapping[str, Any]) -> datetime | None:
    """When an entry was published, if it says so."""
    return datetime.fromtimestamp(entry["published"], UTC) if entry["published"] else None


def entry_text(feed: str, entry: Mapping[str, Any]) -> bytes:
    """An entry as text, below the name of its feed; the same entry always gives the same bytes."""
    moment = entry_moment(entry)
    when = f"{moment:%Y-%m-%d}" if moment else ""
    heading = "\n".join(line for line in (entry["title"], f"{feed} {when}".strip(), entry["link"]) if line)
    return f"{heading}\n\n{entry['text']}".strip().encode(errors="replace") + b"\n"
