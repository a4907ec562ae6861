"""The engine that needs no model and supports every script."""

from __future__ import annotations

from collections.abc import Sequence

from .protocol import Extractor, Found

VERSION = "2"


def rules() -> Extractor:
    """The engine as plugins offer one."""
    return Extractor("rules", VERSION, _by_rules)


def _by_rules(texts: Sequence[str], language: str | None) -> list[Found]:
    from ..extraction.rules import extract

    return [Found(extract(text, language=language)) for text in texts]
