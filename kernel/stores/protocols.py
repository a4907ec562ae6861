"""The interfaces of stores. Writes join the caller's transaction; searches filter before they rank.

A method that takes a unit is a plain function, called within `Database.write`: it awaits nothing, and uses
`off_the_loop` for slow work other than statements, such as placing a file.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from kernel.db.engine import Unit

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Vector: TypeAlias = "npt.NDArray[np.float32]"

_INEXACT = 0.01  # how far a length may be from 1: more than 16-bit numbers lose
_LONGEST_NAME = 255  # the column's


@dataclass(frozen=True)
class Embedded:
    """What `embed_texts` returns: float32 vectors [n, d] of unit length, and the identity of their engine.

    `unrelated` is this model's cosine of two unrelated texts, where similarity starts. `meaning` is the share
    of the vectors in hybrid search, 0 to 1; words have the rest. `languages` are those that the model knows
    (ISO 639), None for nearly all; for a question in another one, the vectors' share is `elsewhere`.

    Raises ValueError for vectors that searches can't compare, so that the plugin that made them is reported.
    A text without any meaning may have a vector of zeros.
    """

    vectors: npt.NDArray[np.float32]
    engine: str
    unrelated: float = 0.0
    meaning: float = 0.8
    languages: frozenset[str] | None = None
    elsewhere: float = 0.2

    def __post_init__(self) -> None:
        import numpy as np

        vectors = np.asarray(self.vectors, np.float32)
        if vectors.ndim != 2:
            raise ValueError(f"the vectors must be [texts, numbers], but have the shape {vectors.shape}")
        lengths = np.linalg.norm(vectors, axis=1)
        odd = np.flatnonzero(~((abs(lengths - 1) <= _INEXACT) | (lengths == 0)))  # including NaN
        if odd.size:
            raise ValueError(f"vector {odd[0]} has the length {lengths[odd[0]]:.4g} instead of 1")
        if not (isinstance(self.engine, str) and 0 < len(self.engine) <= _LONGEST_NAME):
            raise ValueError(f"the engine must be named, in at most {_LONGEST_NAME} characters")
        object.__setattr__(self, "vectors", vectors)

    def share_in(self, language: str | None) -> float:
        """The share of the vectors for a question in `language`, None for an unknown one."""
        known = self.languages is None or language is None or language in self.languages
        return self.meaning if known else min(self.meaning, self.elsewhere)

    def similarity(self, cosine: float) -> float:
        """Convert a cosine to a scale on which 0 is unrelated and 1 is the same text, whatever the model."""
        return (cosine - self.unrelated) / (1.0 - self.unrelated)


LANGUAGE = "language"
"""Key in a point's payload: the ISO 639 code of its text's language, for stemming."""


@dataclass(frozen=True)
class Point:
    """A text with its vector (float32, unit length) and its metadata.

    Points are published and removed by `group` (a document); `position` is their order within it.
    """

    id: str
    group: str
    position: int
    text: str
    vector: Vector
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredPoint:
    """A stored point, without its vector."""

    id: str
    group: str
    position: int
    text: str
    payload: Mapping[str, Any]


@dataclass(frozen=True)
class Hit:
    """A found point with its score: the cosine for a dense search, at most 1 for a hybrid one.

    `words` says how well the words match (BM25), from 0 to 1; None for a dense search. `asked` is the cosine
    to `Query.question`; None if the store doesn't say.
    """

    point: StoredPoint
    score: float
    cosine: float
    words: float | None = None
    asked: float | None = None


@dataclass(frozen=True)
class Query:
    """A search in one collection. `groups` limits it to these groups, before ranking.

    `text` with a `vector` requests a hybrid search: BM25 and dense scores, fused; cosines count from
    `unrelated` and have the share `meaning`. `engine` is the engine that made the vector; a collection of
    another engine raises EngineMismatch. `question` is another vector by that engine: each hit gets its
    cosine to it, too, which plays no part in the ranking.
    """

    vector: Vector
    k: int
    text: str | None = None
    groups: Sequence[str] | None = None
    engine: str | None = None
    unrelated: float = 0.0
    meaning: float = 0.8
    question: Vector | None = None


class VectorStore(Protocol):
    """Collections of points. Checked by `kernel.stores.conformance_vectors.VectorStoreConformance`."""

    def ensure(self, unit: Unit, collection: str, dimension: int, engine: str) -> None:
        """Create the collection if it is new. Raises EngineMismatch if another engine made its vectors."""
        ...

    def stage(self, unit: Unit, collection: str, points: Sequence[Point]) -> None:
        """Write points that no search sees yet. Writing an id twice makes one point."""
        ...

    async def staged(self, collection: str, group: str) -> int:
        """How many points of the group are written, published or not."""
        ...

    def publish(self, unit: Unit, collection: str, *groups: str) -> int:
        """Let searches see the groups, all at once with the commit; returns their number of points."""
        ...

    def annotate(self, unit: Unit, collection: str, group: str, values: Mapping[str, Any]) -> None:
        """Add to the payload of each published point of a group; searches that start after the commit see it.
        Does nothing if there is no such collection.
        """
        ...

    def remove_group(self, unit: Unit, collection: str, group: str) -> int:
        """Remove a group's points, staged or not; searches that start after the commit never find them."""
        ...

    def drop(self, unit: Unit, collection: str) -> None:
        """Remove a collection with all its points.

        However many there are, none is found after the commit; they are deleted in the background.
        """
        ...

    def rename(self, unit: Unit, collection: str, name: str) -> None:
        """Give a collection an unused name; does nothing if there is no such collection."""
        ...

    async def search(self, collection: str, query: Query) -> list[Hit]:
        """The best hits, best first, among what is committed when the search starts.

        Raises EngineMismatch if the query names an engine other than the collection's.
        """
        ...

    async def points(
        self, collection: str, group: str, limit: int, offset: int
    ) -> tuple[list[StoredPoint], int]:
        """A group's published points by position, and how many there are."""
        ...

    async def vectors(self, collection: str, group: str, limit: int, offset: int) -> Embedded | None:
        """The vectors of the page that `points` returns, and their engine; None for an unknown collection."""
        ...

    async def count(self, collection: str) -> int:
        """How many points searches can see."""
        ...


class EngineMismatch(Exception):
    """Vectors of two embedding engines must not be mixed in one collection.

    `stored` is the engine whose vectors the collection contains, `given` the other one.
    """

    def __init__(self, stored: str, given: str) -> None:
        self.stored = stored
        self.given = given
        super().__init__(f"the collection holds vectors from {stored}, not from {given}")


@dataclass(frozen=True)
class Staged:
    """Content that has been received, hashed, measured and synced, but is not kept yet."""

    path: Path
    sha256: str
    size: int

    def discard(self) -> None:
        """Delete it, unless it was kept."""
        self.path.unlink(missing_ok=True)


class BlobStore(Protocol):
    """Contents by the SHA-256 of their bytes. Checked by `kernel.stores.conformance.BlobStoreConformance`."""

    async def stage(self, chunks: AsyncIterator[bytes], limit: int) -> Staged:
        """Write the stream to a synced temporary file.

        Raises PayloadTooLarge beyond `limit` bytes, InsufficientStorage if there is no space for it.
        """
        ...

    def keep(self, unit: Unit, staged: Staged, holder: str) -> None:
        """Make the content a blob that `holder` refers to; it is durable when the unit commits."""
        ...

    def release(self, unit: Unit, sha256: str, holder: str) -> None:
        """Drop the holder's reference; with the last one, the content is removed after the commit."""
        ...

    async def local(self, sha256: str) -> Path:
        """A file with the content, for reading only; it exists as long as somebody holds the content."""
        ...

    async def sweep(self) -> int:
        """Remove what killed processes left behind; returns how many contents. Called at each start."""
        ...


class Cache(Protocol):
    """Short-lived shared state. Losing it loses no data."""

    async def increment(self, key: str, window: int) -> tuple[int, int]:
        """Add one to the count of `key` in the current fixed window of `window` seconds.

        Returns (count, seconds left in the window). Raises CacheUnavailable.
        """
        ...

    async def count(self, key: str, window: int) -> int:
        """The count of `increment` in the current window. Raises CacheUnavailable."""
        ...

    async def ping(self) -> None:
        """Raise CacheUnavailable if the store does not answer."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


class CacheUnavailable(Exception):
    """The cache store does not respond."""
