"""Build one document's tree: cluster its passages, summarize each cluster, and repeat, up to three levels.

A tree is built in memory and written in one transaction, so a killed build leaves nothing behind. Ids are
derived from the place in the tree; a rebuilt tree replaces the previous one.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select

from builtin_plugins.documents.api import Pages, Sections, page_at
from builtin_plugins.inference.api import Embedded
from builtin_plugins.rag.answering.sentences import split_sentences
from builtin_plugins.rag.models import Document, KnowledgeBase
from builtin_plugins.rag.services.embedding import embed
from builtin_plugins.rag.services.loading import pages_of, place_of
from builtin_plugins.rag.trees.clusters import Vectors, clusters
from builtin_plugins.rag.trees.summaries import summarize
from builtin_plugins.vectors.api import VECTORS, Point, StoredPoint
from kernel.sdk import Platform, Unavailable, Unit

FEWEST, MOST = 6, 300
LEVELS = 3
_BATCH = 96
_NAMESPACE = uuid.UUID("0f0a3c1e-2f6b-4b0a-8a0e-5f3c9d1b7e42")


@dataclass(frozen=True)
class Node:
    """A passage (level 0) or a summary, with what it covers: characters and pages of the document."""

    id: str
    level: int
    text: str
    page: int | None
    char_start: int
    char_end: int
    children: tuple[str, ...] = ()
    pages: Pages = ()
    sections: Sections = ()


async def build(platform: Platform, document: Document, base: KnowledgeBase) -> bool:
    """Build and store a document's tree; returns whether it was stored. Raises Unavailable, EngineMismatch.

    A document with fewer than 6 or more than 300 passages gets none.
    """
    rows, total = await platform.resource(VECTORS).points(base.collection, document.id, MOST, 0)
    if not FEWEST <= total <= MOST:
        return False
    nodes, embedded = await _grown(platform, document.id, base, [_leaf(row) for row in rows])
    return await platform.database.write(_store, platform, document.id, base, nodes, embedded)


async def _grown(
    platform: Platform, document_id: str, base: KnowledgeBase, leaves: Sequence[Node]
) -> tuple[list[Node], Embedded]:
    """All summaries, level by level, and their vectors."""
    import numpy as np

    summaries: list[Node] = []
    vectors: list[Vectors] = []
    below, engine = list(leaves), await _embedded(platform, base, leaves)
    for level in range(1, LEVELS + 1):
        groups = clusters(engine.vectors)
        nodes = [
            await _summary(platform, document_id, base, level, number, [below[at] for at in group])
            for number, group in enumerate(groups)
        ]
        engine = await _embedded(platform, base, nodes)
        summaries += nodes
        vectors.append(engine.vectors)
        below = nodes
        if len(nodes) < 2:
            break
    return summaries, Embedded(np.vstack(vectors), engine.engine, engine.unrelated)


async def _summary(
    platform: Platform, document_id: str, base: KnowledgeBase, level: int, number: int, children: list[Node]
) -> Node:
    texts = [child.text for child in children]
    text = await summarize(platform, base.embedding_model, base.llm_model, texts)
    pages = await asyncio.to_thread(_pages_quoted, text, children)
    return Node(
        str(uuid.uuid5(_NAMESPACE, f"{document_id}/{level}/{number}")),
        level,
        text,
        children[0].page,
        min(child.char_start for child in children),
        max(child.char_end for child in children),
        tuple(child.id for child in children),
        pages,
    )


def _pages_quoted(text: str, children: Sequence[Node]) -> Pages:
    """The pages of the sentences that a summary repeats; without a model, it only has such sentences."""
    pages: dict[int, int | None] = {}
    for child in (one for one in children if one.page is not None):
        for sentence in split_sentences(child.text):
            if (place := text.find(sentence.text)) >= 0:
                pages.setdefault(place, page_at(sentence.start, child.page, child.pages))
    return tuple(sorted(pages.items()))


async def _embedded(platform: Platform, base: KnowledgeBase, nodes: Sequence[Node]) -> Embedded:
    import numpy as np

    parts = [
        await embed(
            platform, base.embedding_model, [node.text for node in nodes[start : start + _BATCH]], "passage"
        )
        for start in range(0, len(nodes), _BATCH)
    ]
    return Embedded(np.vstack([part.vectors for part in parts]), parts[0].engine, parts[0].unrelated)


def _store(
    unit: Unit,
    platform: Platform,
    document_id: str,
    base: KnowledgeBase,
    nodes: Sequence[Node],
    embedded: Embedded,
) -> bool:
    """Replace the document's tree; False if it or its knowledge base was deleted in the meantime."""
    query = select(KnowledgeBase.revision).where(KnowledgeBase.id == base.id)
    revision = unit.session.scalar(query.with_for_update(read=True, key_share=True))
    if revision is None:
        return False
    if revision != base.revision:
        raise Unavailable("The embedding model was changed in the meantime")
    document: Document | None = unit.session.get(Document, document_id, with_for_update=True)
    if document is None or document.status != "completed":
        return False
    collection, vectors = base.tree_collection, platform.resource(VECTORS)
    points = [_point(document_id, at, node, embedded.vectors[at]) for at, node in enumerate(nodes)]
    vectors.ensure(unit, collection, embedded.vectors.shape[1], embedded.engine)
    vectors.remove_group(unit, collection, document_id)
    vectors.stage(unit, collection, points)
    vectors.publish(unit, collection, document_id)
    document.tree_nodes, document.tree_levels = len(nodes), max(node.level for node in nodes)
    document.tree_built_at = unit.now()
    return True


def _leaf(row: StoredPoint) -> Node:
    payload = row.payload
    place = (payload.get("page"), payload["char_start"], payload["char_end"])
    return Node(row.id, 0, row.text, *place, pages=pages_of(payload))


def _point(document_id: str, at: int, node: Node, vector: Vectors) -> Point:
    payload = {**place_of(node), "tree_level": node.level, "children_ids": list(node.children)}
    return Point(node.id, document_id, at, node.text, vector, payload)
