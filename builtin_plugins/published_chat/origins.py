"""The origins of pages that may use a chat (RFC 6454): a list in one text, as the owner writes it."""

from __future__ import annotations

import re

ANY = "*"

_SEPARATORS = re.compile(r"[\s,]+")
_ORIGIN = re.compile(r"https?://(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?")


def parse(text: str | None) -> frozenset[str]:
    """The origins, or ``*`` for any. Raises ValueError, naming what is not an origin."""
    origins = set()
    for word in filter(None, _SEPARATORS.split(text or "")):
        origin = word.lower().removesuffix("/")
        if origin != ANY and not _ORIGIN.fullmatch(origin):
            raise ValueError(f"'{word[:80]}' is not an origin; write https://example.org, or * for any page")
        origins.add(origin)
    return frozenset(origins)


def allowed(text: str | None, origin: str | None) -> bool:
    """Whether a page of this origin may use the chat; never for a missing or opaque origin."""
    if origin is None or not _ORIGIN.fullmatch(origin.lower()):
        return False
    listed = parse(text)
    return ANY in listed or origin.lower() in listed
