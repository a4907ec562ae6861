"""Settings of the plugin."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from kernel.sdk import Settings


class SourcesSettings(Settings):
    """When a run stops and asks, how much is read at once, and what is kept of runs."""

    administered: ClassVar[frozenset[str]] = frozenset(
        {
            "sources_missing_percent",
            "sources_missing_few",
            "sources_at_once",
            "sources_per_base",
            "sources_items",
            "sources_rights_hours",
            "sources_run_days",
        }
    )

    sources_missing_percent: int = Field(
        30,
        ge=1,
        le=100,
        description="A run that would delete more than this share of a source's documents stops until a "
        "person confirms it.",
    )
    sources_missing_few: int = Field(
        5, ge=0, le=10_000, description="So many documents of a source may go, unless it is empty."
    )
    sources_at_once: int = Field(
        4, ge=1, le=32, description="Documents that a run fetches from a source at the same time."
    )
    sources_per_base: int = Field(20, ge=1, le=1_000, description="Sources that a knowledge base may have.")
    sources_items: int = Field(
        200_000,
        ge=1,
        le=10_000_000,
        description="Items that a source may have; a run with more fails.",
    )
    sources_rights_hours: float = Field(
        24,
        gt=0,
        le=8760,
        description="If the permissions at a source can't be read for so many hours, nobody may read its "
        "documents until they can.",
    )
    sources_run_days: int = Field(30, ge=1, le=3650, description="Days for which runs are kept.")
