"""What an extraction engine is, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..extraction.mentions import Mention

RelationKind = Literal["SVO", "CO_OCCURRENCE"]
CO_OCCURS_WITH = "CO_OCCURS_WITH"


class Link(NamedTuple):
    """Two entities (by key) that a text relates at `start` to `end`; `weight` says how closely, up to 1."""

    subject: str
    predicate: str
    object: str
    kind: RelationKind
    weight: float
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Found:
    """Mentions in the order of the text, and the relations that the engine sees by its grammar.

    `links` None means that it sees no grammar: entities near each other are related then.
    """

    mentions: Sequence[Mention]
    links: Sequence[Link] | None = None


@dataclass(frozen=True, slots=True)
class Extractor:
    """An engine (`register_extractors`).

    `analyse(texts, language)` returns a `Found` for each text; it is a plain function, called in a thread.
    `missing()` returns what the engine lacks, as a remedy, or None. `version` changes when it finds other
    things in the same text.
    """

    name: str
    version: str
    analyse: Callable[[Sequence[str], str | None], Sequence[Found]]
    missing: Callable[[], str | None] = lambda: None
