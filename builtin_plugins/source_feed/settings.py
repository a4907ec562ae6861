"""Settings of a source."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from yarl import URL


def _address(value: str) -> str:
    url = URL(value)
    if url.scheme not in ("http", "https") or not url.host or url.user or url.password:
        raise ValueError("expected an address such as https://example.org/feed, without a password in it")
    return value


class FeedSettings(BaseModel):
    """What a source of this kind is."""

    model_config = ConfigDict(extra="forbid")

    url: Annotated[str, AfterValidator(_address)] = Field(
        ..., title="Address", min_length=1, max_length=1000, description="Of an RSS, Atom or JSON feed."
    )
    entries: int = Field(
        200, ge=1, le=2_000, title="Entries", description="Newest entries that a run takes from the feed."
    )
