"""Which items of a source become documents: by path, size, media type and age."""

from __future__ import annotations

import mimetypes
import re
from datetime import datetime, timedelta
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from builtin_plugins.sources.protocol import SourceItem

_MEGABYTE: Final = 1024 * 1024
_PARTS: Final = re.compile(r"\*\*/?|\*|\?|[^*?]+")

Pattern = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=255)]


class SourceFilters(BaseModel):
    """What is left out. Without any of these, every item is taken."""

    model_config = ConfigDict(extra="forbid")

    include: list[Pattern] = Field(
        default_factory=list,
        max_length=100,
        description="Only paths that fit one of these, such as `policies/**` or `*.md`.",
    )
    exclude: list[Pattern] = Field(
        default_factory=list, max_length=100, description="Not those that fit one of these."
    )
    max_size_mb: float | None = Field(None, gt=0, le=100_000, description="Nothing larger.")
    media_types: list[Pattern] = Field(
        default_factory=list,
        max_length=100,
        description="Only these media types, such as `application/pdf` or `text/*`.",
    )
    max_age_days: int | None = Field(
        None, ge=1, le=36_500, description="Nothing that was last modified longer ago."
    )

    def refusal(self, item: SourceItem, now: datetime) -> str | None:
        """Why an item is left out; None if it is taken. A time in the future is no age."""
        path = item.path.strip("/")
        if self.include and not any(fits(path, one) for one in self.include):
            return "filter: its path is not included"
        if any(fits(path, one) for one in self.exclude):
            return "filter: its path is excluded"
        if self.max_size_mb is not None and (item.size or 0) > self.max_size_mb * _MEGABYTE:
            return "filter: it is too large"
        if self.media_types and not any(fits(media_type_of(item) or "", one) for one in self.media_types):
            return "filter: its media type is not included"
        oldest = None if self.max_age_days is None else now - timedelta(days=self.max_age_days)
        if oldest is not None and item.modified is not None and item.modified < oldest:
            return "filter: it is too old"
        return None


def media_type_of(item: SourceItem) -> str | None:
    """What the source says, or what the name suggests."""
    return item.media_type or mimetypes.guess_type(item.name)[0]


def fits(path: str, pattern: str) -> bool:
    """Whether a path fits a pattern, in upper or lower case.

    `*` and `?` stay within a part, `**` spans several; a pattern without a slash is about the last part.
    """
    pattern = pattern.lower()
    subject = (path if "/" in pattern else path.rpartition("/")[2]).lower()
    ends = {0}
    for part in _PARTS.findall(pattern.strip("/")):
        ends = _ends(subject, part, ends)
    return len(subject) in ends


def _ends(subject: str, part: str, starts: set[int]) -> set[int]:
    """Where a part of a pattern may end that begins at one of these places; takes linear time."""
    places = range(min(starts, default=len(subject) + 1), len(subject) + 1)
    if part == "**":
        return set(places)
    if part == "**/":  # any number of folders, none included
        return starts | {at for at in places[1:] if subject[at - 1] == "/"}
    if part == "?":
        return {at + 1 for at in starts if subject[at : at + 1] not in ("", "/")}
    if part != "*":
        return {at + len(part) for at in starts if subject.startswith(part, at)}
    ends, goes_on = set[int](), False
    for at in places:
        goes_on = at in starts or (goes_on and subject[at - 1] != "/")
        if goes_on:
            ends.add(at)
    return ends
