"""Sentences of different documents that mean nearly the same, but for a value: a model says whether they
contradict each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence, Set
from typing import TYPE_CHECKING, Final, NamedTuple

from builtin_plugins.inference.api import Embedded
from builtin_plugins.rag.answering.contradicting import values_differ
from builtin_plugins.rag.contradictions.statements import Statement
from builtin_plugins.rag.contradictions.subjects import Subject
from builtin_plugins.rag.services.embedding import embed
from kernel.sdk import Platform

if TYPE_CHECKING:
    import numpy as np

MOST_STATEMENTS: Final = 4_000
_BATCH: Final = 96
_ROWS: Final = 256
_NEAREST: Final = 5
"""Sentences of other documents that each one is held against."""
_LEAST: Final = 0.4
"""Similarity, where unrelated sentences have 0 and equal ones 1."""


class SourcedStatement(NamedTuple):
    """A statement, and the document that it is of."""

    document_id: str
    filename: str
    subject: Subject | None
    statement: Statement

    @property
    def place(self) -> tuple[str, int]:
        """Where it begins."""
        return self.document_id, self.statement.char_start


Pair = tuple[SourcedStatement, SourcedStatement]
"""The statement of the newer document first."""


async def find_candidates(
    platform: Platform,
    model: str,
    statements: Sequence[SourcedStatement],
    settled: Set[tuple[tuple[str, int], ...]],
) -> list[Pair]:
    """Pairs that only a model can tell, the most similar first; `model` embeds, and `statements` are those of
    the newest document first. `settled` are the places of pairs that are known to contradict each other.

    Raises ModelUnavailable.
    """
    parts: list[Embedded] = []
    for start in range(0, len(statements), _BATCH):
        texts = [one.statement.text for one in statements[start : start + _BATCH]]
        parts.append(await embed(platform, model, texts, "passage"))
    return await asyncio.to_thread(_candidates, statements, parts, settled) if parts else []


def _candidates(
    statements: Sequence[SourcedStatement],
    parts: Sequence[Embedded],
    settled: Set[tuple[tuple[str, int], ...]],
) -> list[Pair]:
    import numpy as np

    vectors = np.vstack([part.vectors for part in parts])
    near = {
        (one, other): cosine
        for one, other, cosine in _near(vectors, [placed.document_id for placed in statements])
        if parts[0].similarity(cosine) >= _LEAST
    }
    ordered = sorted(near, key=lambda pair: (-near[pair], pair))
    pairs = ((statements[one], statements[other]) for one, other in ordered)
    return [pair for pair in pairs if _is_open(*pair) and (pair[0].place, pair[1].place) not in settled]


def _near(vectors: np.ndarray, documents: Sequence[str]) -> Iterable[tuple[int, int, float]]:
    """Each statement with the nearest ones of other documents: two numbers, the lower first; the cosine."""
    import numpy as np

    numbers = {document: number for number, document in enumerate(dict.fromkeys(documents))}
    owners = np.array([numbers[document] for document in documents])
    count = min(_NEAREST, len(documents))
    for start in range(0, len(documents), _ROWS):
        cosines = vectors[start : start + _ROWS] @ vectors.T
        cosines[owners[start : start + _ROWS, None] == owners[None, :]] = -2.0
        nearest = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
        for row, columns in enumerate(nearest.tolist(), start):
            for column in columns:
                yield min(row, column), max(row, column), float(cosines[row - start, column])


def _is_open(one: SourcedStatement, other: SourcedStatement) -> bool:
    """Whether they may contradict each other: other values, and not of things that are numbered, such as
    contracts, or of the reports of two months.
    """
    own, others = one.subject, other.subject
    if own and others and own.words == others.words and own != others:
        return False
    return values_differ(one.statement.tokens, other.statement.tokens)
