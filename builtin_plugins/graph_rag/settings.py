"""Settings of the graphs."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from kernel.sdk import Settings


class GraphSettings(Settings):
    """Knowledge graphs of documents, built without a language model."""

    env_prefix: ClassVar[str] = "PLATFORM_GRAPH_RAG_"

    engine: str = Field(
        "rules", description="Engine that finds entities: rules, or the name of a plugin's engine."
    )
    max_text_chars: int = Field(
        5_000_000, ge=1, le=20_000_000, description="Longest text of one request to build a graph of."
    )
