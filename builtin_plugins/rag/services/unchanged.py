"""Vectors of the version that a document replaces, so that only passages that have changed are embedded."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

from builtin_plugins.inference.api import Embedded
from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.rag.services.embedding import embed
from builtin_plugins.rag.services.identities import replaced_by
from builtin_plugins.vectors.api import VECTORS, searched_text
from builtin_plugins.vectors.api import Vector as Vector
from kernel.sdk import Platform

_MOST: Final = 20_000
"""Passages, whose vectors take up 30 MB while the document is read."""
_PAGE: Final = 1_000


class KnownVectors:
    """Embeds passages with the vectors that are known, by the digest of what was embedded, of one engine."""

    def __init__(self, vectors: Mapping[bytes, Vector], engine: str) -> None:
        self._vectors = vectors
        self._engine = engine

    async def embed(self, platform: Platform, model: str, texts: Sequence[str]) -> Embedded:
        """One vector for each text. Raises what `embed` raises."""
        import numpy as np

        vectors = [self._vectors.get(_digest(text)) for text in texts]
        missing = [text for text, vector in zip(texts, vectors, strict=True) if vector is None]
        embedded = await embed(platform, model, missing, "passage") if missing else None
        if embedded is not None and (embedded.engine != self._engine or len(missing) == len(texts)):
            return embedded if len(missing) == len(texts) else await embed(platform, model, texts, "passage")
        new = iter(() if embedded is None else embedded.vectors)
        return Embedded(np.stack([next(new) if one is None else one for one in vectors]), self._engine)


async def known_vectors(platform: Platform, base: KnowledgeBase, document: Document) -> KnownVectors:
    """Those of the completed version that this one replaces; none if there is none, or it is very long."""
    replaced = await platform.database.read(replaced_by, document)
    vectors: dict[bytes, Vector] = {}
    engine, store, count = "", platform.resource(VECTORS), replaced.chunk_count if replaced else 0
    for start in range(0, count if replaced is not None and count <= _MOST else 0, _PAGE):
        window = (base.collection, replaced.id if replaced else "", _PAGE, start)
        points, _ = await store.points(*window)
        page = await store.vectors(*window)
        if page is None or len(page.vectors) != len(points):  # it is being replaced by another
            break
        engine = page.engine
        for point, vector in zip(points, page.vectors, strict=True):
            vectors[_digest(searched_text(point.text, point.payload))] = vector
    return KnownVectors(vectors, engine)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
