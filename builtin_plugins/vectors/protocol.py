"""What callers and backends of vector search share: points, queries, hits, and the interface of a store.

Writes join the caller's transaction; searches filter before they rank. A method that takes a unit is a plain
function, called within `Database.write`: it awaits nothing, and uses `off_the_loop` for slow work other than
statements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from builtin_plugins.inference.api import Embedded
from kernel.sdk import Unit

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from sqlalchemy import Select

Vector: TypeAlias = "npt.NDArray[np.float32]"

LANGUAGE = "language"
"""Key in a point's payload: the ISO 639 code of its text's language, for stemming."""

CONTEXT = "context"
"""Key in a point's payload: words that are searched with its text and are not part of it, such as whom its
document is about.
"""

WORDS_ONLY = "none"
"""The engine of a collection that is searched by words alone. Its dimension is 0: vectors have no numbers."""


def searched_text(text: str, payload: Mapping[str, Any]) -> str:
    """What is indexed and embedded of a point: its context, if it has one, then its text."""
    context = payload.get(CONTEXT)
    return f"{context}\n\n{text}" if context else text


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

    `words` says how well the words match (BM25), from 0 to 1; None for a dense search.
    `question_cosine` is the cosine to `Query.question`; None if the store doesn't say.
    """

    point: StoredPoint
    score: float
    cosine: float
    words: float | None = None
    question_cosine: float | None = None


@dataclass(frozen=True)
class GroupQuery:
    """Groups that a query finds in the database, as it is when the search begins.

    Queries with the same `key` find the same `names` as long as the points of the collection and the number
    that `version` finds stay the same: a store may keep what it found. `isolated`: other groups are secret,
    and nothing of them shows in scores, such as how rare a word is.
    """

    names: Select[Any]
    key: str
    version: Select[Any]
    isolated: bool = False


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
    groups: Sequence[str] | GroupQuery | None = None
    engine: str | None = None
    unrelated: float = 0.0
    meaning: float = 0.8
    question: Vector | None = None

    @property
    def is_isolated(self) -> bool:
        """Whether scores depend on nothing but the groups that are searched."""
        return isinstance(self.groups, GroupQuery) and self.groups.isolated


@dataclass(frozen=True)
class WordQuery:
    """A search by words alone in one collection; `groups` limits it to these groups, before ranking."""

    text: str
    k: int
    groups: Sequence[str] | GroupQuery | None = None

    @property
    def is_isolated(self) -> bool:
        """See `Query.is_isolated`."""
        return isinstance(self.groups, GroupQuery) and self.groups.isolated


class VectorStore(Protocol):
    """Collections of points. Checked by `builtin_plugins.vectors.conformance.VectorStoreConformance`."""

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

    def retire(self, unit: Unit, collection: str, group: str, into: str) -> int:
        """Take a group's published points out of a collection and keep them in another, where only
        `search_words` finds them and `points` lists them. Staged ones are removed. Returns how many were
        taken out.
        """
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

    async def search_words(self, collection: str, query: WordQuery) -> list[Hit]:
        """The points with the most of a text's words, best first, retired ones included; their scores are
        `words`, their cosines 0. None has none of the words.
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

    `stored` is the engine whose vectors the collection contains, `current` the one that runs now.
    """

    def __init__(self, stored: str, current: str) -> None:
        self.stored = stored
        self.current = current
        super().__init__(f"the collection holds vectors from {stored}, not from {current}")
