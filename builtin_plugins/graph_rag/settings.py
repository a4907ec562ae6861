"""Settings of the graphs."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from kernel.sdk import Settings, env


class GraphSettings(Settings):
    """Knowledge graphs of documents."""

    env_prefix: ClassVar[str] = "PLATFORM_GRAPH_RAG_"
    administered: ClassVar[frozenset[str]] = frozenset({"max_text_chars"})

    engine: str = Field(
        "rules",
        description="Engine that finds entities: rules, spacy, model, or the name of a plugin's engine.",
    )
    llm_model: str | None = Field(
        None, description="Model that the engine `model` asks; if unset, the runtime's default model."
    )
    spacy_model: str = Field(
        "en_core_web_sm",
        validation_alias=env("SPACY_MODEL"),
        description="Package of the pipeline that the engine spacy loads.",
    )
    max_text_chars: int = Field(
        5_000_000,
        ge=1,
        le=20_000_000,
        description="Longest text, in characters, that one request may build a graph from.",
    )
