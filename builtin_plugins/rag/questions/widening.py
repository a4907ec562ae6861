"""`parent_context`: each passage together with its neighbours in the document."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from builtin_plugins.rag.questions.ranked import Ranked, Retrieved
from kernel.sdk import Platform, StoredPoint


async def widened(platform: Platform, found: Retrieved) -> Retrieved:
    """Each passage with one neighbour on either side, its scores being those of the passage itself.

    A passage that a better one shows already, whole, is left out.
    """
    wide = await asyncio.gather(*(_wide(platform, item) for item in found.items))
    return replace(found, items=_without_repeats(wide, found.items))


async def _wide(platform: Platform, item: Ranked) -> Ranked:
    if item.tree_level:
        return item
    first = max(item.position - 1, 0)
    count = item.position - first + 2
    rows, _ = await platform.vectors.points(
        f"rag:{item.knowledge_base_id}", item.passage.document_id, count, first
    )
    if not any(row.id == item.passage.chunk_id for row in rows):
        return item  # deleted in between
    passage = replace(
        item.passage,
        text=joined(rows),
        page=rows[0].payload.get("page"),
        char_start=rows[0].payload["char_start"],
        char_end=max(row.payload["char_end"] for row in rows),
    )
    return replace(item, passage=passage, child=item.position)


def place_of(item: Ranked, shown: Sequence[Ranked]) -> int | None:
    """Where a passage is shown, counted from 1: by itself, or within a widened one; None where it is not."""
    own = (number for number, one in enumerate(shown, 1) if one.passage.chunk_id == item.passage.chunk_id)
    wide = (number for number, one in enumerate(shown, 1) if one.child is not None and _holds(one, item))
    return next(own, next(wide, None))


def joined(rows: Sequence[StoredPoint]) -> str:
    """The text of passages that follow each other. They overlap; what lies between is white space."""
    text, end = "", rows[0].payload["char_start"]
    for row in rows:
        start = row.payload["char_start"]
        text += "\n" * (start > end) + row.text[max(0, end - start) :]
        end = max(end, row.payload["char_end"])
    return text


def _without_repeats(wide: Sequence[Ranked], children: Sequence[Ranked]) -> list[Ranked]:
    kept: list[Ranked] = []
    for item, child in zip(wide, children, strict=True):
        if not any(_holds(other, child) for other in kept):
            kept.append(item)
    return kept


def _holds(wide: Ranked, child: Ranked) -> bool:
    outer, inner = wide.passage, child.passage
    return (
        outer.document_id == inner.document_id
        and outer.char_start <= inner.char_start
        and inner.char_end <= outer.char_end
    )
