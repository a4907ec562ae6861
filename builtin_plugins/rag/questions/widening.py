"""`parent_context`: each passage together with its neighbors in the document."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from builtin_plugins.rag.answering.passages import Pages
from builtin_plugins.rag.questions.ranked import Ranked, Retrieved
from builtin_plugins.rag.services.places import pages_of
from kernel.sdk import Platform, StoredPoint


async def widened(platform: Platform, found: Retrieved) -> Retrieved:
    """Each passage with one neighbor on either side, with the scores of the passage itself.

    A passage that a better one already shows in full is left out.
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
        return item  # deleted in the meantime
    text, pages = joined(rows)
    passage = replace(
        item.passage,
        text=text,
        page=rows[0].payload.get("page"),
        pages=pages,
        char_start=rows[0].payload["char_start"],
        char_end=max(row.payload["char_end"] for row in rows),
    )
    return replace(item, passage=passage, child=item.position)


def place_of(item: Ranked, shown: Sequence[Ranked]) -> int | None:
    """The number, from 1, of the item that shows a passage, alone or within a wider one; None without one."""
    own = (number for number, one in enumerate(shown, 1) if one.passage.chunk_id == item.passage.chunk_id)
    wide = (number for number, one in enumerate(shown, 1) if one.child is not None and _holds(one, item))
    return next(own, next(wide, None))


def joined(rows: Sequence[StoredPoint]) -> tuple[str, Pages]:
    """The text of passages that follow each other, and the later pages that begin in it.

    Passages overlap, or only white space is between them.
    """
    text, end = "", rows[0].payload["char_start"]
    page, pages = rows[0].payload.get("page"), list[tuple[int, int | None]]()
    for row in rows:
        start = row.payload["char_start"]
        text += "\n" * (start > end)
        known = max(0, end - start)
        for place, begun in ((0, row.payload.get("page")), *pages_of(row.payload)):
            if place >= known and begun != page:
                pages.append((len(text) + place - known, begun))
                page = begun
        text += row.text[known:]
        end = max(end, row.payload["char_end"])
    return text, tuple(pages)


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
