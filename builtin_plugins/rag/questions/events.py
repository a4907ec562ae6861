"""What is reported while a question is answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from builtin_plugins.rag.questions.ranked import Ranked, source_of
from builtin_plugins.rag.schemas import QueryAnswer, Source


@dataclass(frozen=True)
class Step:
    """A step of the work begins; `message` is for people."""

    name: str
    message: str


@dataclass(frozen=True)
class Found:
    """The passages that the answer will be based on; rendered only on demand, as drafts show none."""

    items: Sequence[Ranked]
    explain: bool = False

    @property
    def sources(self) -> list[Source]:
        """The sources as clients see them; the first is cited as [1]."""
        return [source_of(item, explain=self.explain) for item in self.items]


@dataclass(frozen=True)
class Piece:
    """The next piece of the answer's text."""

    text: str


@dataclass(frozen=True)
class Done:
    """The whole answer."""

    answer: QueryAnswer


Event = Step | Found | Piece | Done
