"""The engine that needs no model and supports every script."""

from __future__ import annotations

from collections.abc import Sequence

from .protocol import Extraction, ExtractionEngine

VERSION = "2"


def rules() -> ExtractionEngine:
    """The engine as plugins offer one."""
    return ExtractionEngine("rules", VERSION, _by_rules)


def _by_rules(texts: Sequence[str], language: str | None) -> list[Extraction]:
    from ..extraction.rules import extract

    return [Extraction(extract(text, language=language)) for text in texts]
