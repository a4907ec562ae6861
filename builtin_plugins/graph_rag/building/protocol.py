"""What an extraction engine is, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..extraction.mentions import Mention

RelationKind = Literal["SVO", "CO_OCCURRENCE"]
CO_OCCURS_WITH = "CO_OCCURS_WITH"


class EntityLink(NamedTuple):
    """Two entities (by key) that a text relates at `start` to `end`; `weight` is how closely, up to 1."""

    subject: str
    predicate: str
    object: str
    kind: RelationKind
    weight: float
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Extraction:
    """Mentions in text order, and the relations that the engine finds by grammar.

    If `links` is None, the engine knows no grammar, and entities near each other are related.
    """

    mentions: Sequence[Mention]
    links: Sequence[EntityLink] | None = None


@dataclass(frozen=True, slots=True)
class ExtractionEngine:
    """An engine (`register_extractors`).

    `analyse(texts, language)` returns an `Extraction` for each text, in a thread.
    `missing()` returns what the engine lacks, as a remedy, or None. `version` changes when the results for
    the same text change.
    """

    name: str
    version: str
    analyse: Callable[[Sequence[str], str | None], Sequence[Extraction]]
    missing: Callable[[], str | None] = lambda: None
