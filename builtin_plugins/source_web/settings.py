"""Settings of a source."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from builtin_plugins.source_web.addresses import start_of


def _address(value: str) -> str:
    start_of(value)
    return value


class WebSettings(BaseModel):
    """What a source of this kind is."""

    model_config = ConfigDict(extra="forbid")

    url: Annotated[str, AfterValidator(_address)] = Field(
        ...,
        title="Address",
        min_length=1,
        max_length=1000,
        description="Where to begin, such as https://example.org/docs/. Only what is below it is read.",
    )
    links: bool = Field(
        True, title="Follow links", description="Otherwise only pages that the site's sitemaps name."
    )
    pages: int = Field(
        2_000, ge=1, le=20_000, title="Pages", description="A site with more is not read; narrow it down."
    )
    depth: int = Field(
        10, ge=0, le=100, title="Depth", description="Links that may lie between the beginning and a page."
    )
    max_size_mb: float = Field(
        10, gt=0, le=200, title="Largest page in MB", description="What is larger is left out."
    )
    pause_seconds: float = Field(
        0.5,
        ge=0,
        le=60,
        title="Pause",
        description="Seconds between two requests; longer if the site's robots.txt asks for it.",
    )
