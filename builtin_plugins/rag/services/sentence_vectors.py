"""A cache of sentence vectors, which makes further questions about the same passages faster.

Embedding four sentences costs several times as much as a question. They are kept in memory, by passage and
not just by text: the time of an answer must not reveal whether somebody else's document has the same
sentence.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from builtin_plugins.rag.services.embedding import embed
from kernel.sdk import Platform, ResourceKey

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MOST = 10_000
"""Vectors kept, of 1.5 KB each with the local models."""

Vectors: TypeAlias = "npt.NDArray[np.float32]"


class PassageSentence(NamedTuple):
    """A sentence and the id of the passage that it is in."""

    passage_id: str
    text: str


_Key: TypeAlias = tuple[str, PassageSentence]


class SentenceVectors:
    """The vectors of recently used sentences, by engine. Use it only in the event loop."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: OrderedDict[_Key, Vectors] = OrderedDict()

    async def of(
        self, platform: Platform, model: str, engine: str, sentences: Sequence[PassageSentence]
    ) -> Vectors:
        """One row for each sentence, by `model`. `engine` is the one that embedded the question.

        Raises what `embed` raises.
        """
        import numpy as np

        known = {one: self._find((engine, one)) for one in sentences}
        new = [one for one, vector in known.items() if vector is None]
        if new:
            made = await embed(platform, model, [one.text for one in new], "passage")
            for one, vector in zip(new, made.vectors, strict=True):
                known[one] = self._keep((made.engine, one), vector.copy())  # a row would keep its whole batch
        return np.array([known[one] for one in sentences], np.float32)

    def _find(self, key: _Key) -> Vectors | None:
        vector = self._known.get(key)
        if vector is not None:
            self._known.move_to_end(key)
        return vector

    def _keep(self, key: _Key, vector: Vectors) -> Vectors:
        self._known[key] = vector
        while len(self._known) > self._most:
            self._known.popitem(last=False)
        return vector


SENTENCE_VECTORS: ResourceKey[SentenceVectors] = ResourceKey("rag sentence vectors")
