"""What a vector store offers. Writes join the caller's transaction; searches filter before they rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from kernel.db.engine import Unit

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Embedded:
    """What `embed_texts` answers: float32 vectors [n, d] of unit length, and the identity of their engine."""

    vectors: npt.NDArray[np.float32]
    engine: str


@dataclass(frozen=True)
class Point:
    """A text, its vector (float32, unit length) and what is to be known of it.

    `group` is what points are published and removed by (a document); `position` orders them within it.
    """

    id: str
    group: str
    position: int
    text: str
    vector: Vector
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredPoint:
    """A point as it is kept, without its vector."""

    id: str
    group: str
    position: int
    text: str
    payload: Mapping[str, Any]


@dataclass(frozen=True)
class Hit:
    """A found point with its score: cosine for dense, normalised to at most 1 for hybrid."""

    point: StoredPoint
    score: float
    cosine: float | None


@dataclass(frozen=True)
class Query:
    """A search in one collection. `groups` limits it to these groups, before ranking.

    `text` with a `vector` asks for hybrid search: BM25 and dense scores, fused. `engine` says which engine
    made the vector: a collection of another engine is not searched with it (EngineMismatch).
    """

    vector: Vector
    k: int
    text: str | None = None
    groups: Sequence[str] | None = None
    engine: str | None = None


class VectorStore(Protocol):
    """Collections of points. Held to by `kernel.stores.conformance_vectors.VectorStoreConformance`."""

    async def ensure(self, unit: Unit, collection: str, dimension: int, engine: str) -> None:
        """Make the collection if it is new. Raises EngineMismatch when its vectors are of another engine."""
        ...

    async def stage(self, unit: Unit, collection: str, points: Sequence[Point]) -> None:
        """Write points that no search sees yet. A point id twice is one point."""
        ...

    async def staged(self, collection: str, group: str) -> int:
        """How many points of the group are written, seen or not."""
        ...

    async def publish(self, unit: Unit, collection: str, group: str) -> int:
        """Let searches see the group, all at once with the commit; answers its number of points."""
        ...

    async def remove_group(self, unit: Unit, collection: str, group: str) -> int:
        """Remove a group's points, staged or not; searches that start after the commit never find them."""
        ...

    async def drop(self, unit: Unit, collection: str) -> None:
        """Remove a collection with all its points."""
        ...

    async def search(self, collection: str, query: Query) -> list[Hit]:
        """The best hits, best first, of what is committed when the search starts.

        Raises EngineMismatch when the query names another engine than the collection's.
        """
        ...

    async def points(
        self, collection: str, group: str, limit: int, offset: int
    ) -> tuple[list[StoredPoint], int]:
        """A group's published points by position, and how many there are."""
        ...

    async def count(self, collection: str) -> int:
        """How many points searches can see."""
        ...


class EngineMismatch(Exception):
    """Vectors of two embedding engines must not be mixed in one collection.

    `stored` is the identity of the engine whose vectors the collection holds, `given` that of the other one.
    """

    def __init__(self, stored: str, given: str) -> None:
        self.stored = stored
        self.given = given
        super().__init__(f"the collection holds vectors of {stored}, not of {given}")
