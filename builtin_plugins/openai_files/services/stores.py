"""Vector stores: knowledge bases with OpenAI's names for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from builtin_plugins.openai_files.models import FileBatch, MakingRequest, StoreLabels
from builtin_plugins.openai_files.names import row_in, store_name
from builtin_plugins.openai_files.schemas import (
    ChunkingStrategy,
    CursorQuery,
    FileCounts,
    StoreCreate,
    StoreOut,
    StoreUpdate,
)
from builtin_plugins.rag import api as rag
from kernel.sdk import Caller, Unit, Unprocessable

_CHARACTERS: Final = 4
"""Of a token, roughly."""
_UNNAMED: Final = "Vector store"
KEPT_WITH_BASE: Final = (StoreLabels, FileBatch, MakingRequest)
"""Tables whose rows go with their knowledge base."""


async def create(caller: Caller, request: StoreCreate, base_id: str) -> StoreOut:
    """A new knowledge base of the caller with this id, still without files. Raises Unprocessable."""
    settings = rag.KnowledgeBaseCreate(
        name=request.name or _UNNAMED,
        description=request.description or "",
        **_sizes(request.chunking_strategy),
    )
    base = await caller.platform.resource(rag.CATALOG).create(caller, settings, base_id)
    if not request.metadata:
        return render(base, {})
    return render(base, await caller.platform.database.write(_first_labels, base.id, request.metadata))


def _sizes(strategy: ChunkingStrategy | None) -> dict[str, Any]:
    if strategy is None or strategy.static is None:
        return {}
    sizes = strategy.static
    if sizes.chunk_overlap_tokens > sizes.max_chunk_size_tokens // 2:
        place = ("body", "chunking_strategy", "static", "chunk_overlap_tokens")
        raise Unprocessable.field(place, "must not be more than half of max_chunk_size_tokens")
    return {
        "chunk_size": sizes.max_chunk_size_tokens * _CHARACTERS,
        "chunk_overlap": sizes.chunk_overlap_tokens * _CHARACTERS,
    }


async def list_page(caller: Caller, query: CursorQuery) -> tuple[list[StoreOut], bool]:
    """The knowledge bases that the caller sees, and whether there are more. Raises Unprocessable."""
    rows, more = await caller.platform.resource(rag.CATALOG).bases(caller, page_of(query))
    labels = await caller.platform.database.read(_read_labels, [row.id for row in rows])
    return [render(row, labels.get(row.id, {})) for row in rows], more


async def show(caller: Caller, store_id: str) -> StoreOut:
    """One vector store. Raises KnowledgeBaseNotFound."""
    base = await caller.platform.resource(rag.CATALOG).base(caller, row_in(store_id))
    labels = await caller.platform.database.read(_read_labels, [base.id])
    return render(base, labels.get(base.id, {}))


async def update(caller: Caller, store_id: str, change: StoreUpdate) -> StoreOut:
    """Change name or metadata. Raises KnowledgeBaseNotFound, NotOwner."""
    catalog, base_id = caller.platform.resource(rag.CATALOG), row_in(store_id)
    await catalog.check_own(caller, base_id)
    if change.name is not None:
        await catalog.rename(caller, base_id, change.name, None)
    if change.metadata is not None:
        await caller.platform.database.write(_write_labels, base_id, change.metadata)
    return await show(caller, store_id)


async def remove(caller: Caller, store_id: str) -> str:
    """Delete the knowledge base, with a receipt; returns the id. Raises DependentPipelines."""
    base_id = row_in(store_id)
    await caller.platform.resource(rag.CATALOG).remove(caller, base_id)
    return store_name(base_id)


def remove_rows(unit: Unit, base_id: str) -> int:
    """Remove what this plugin keeps of a knowledge base; returns how many rows there were."""
    removed = 0
    for table in KEPT_WITH_BASE:
        result: Any = unit.session.execute(delete(table).where(table.knowledge_base_id == base_id))
        removed += result.rowcount
    return removed


def page_of(query: CursorQuery) -> rag.CursorPage:
    """A page of rows whose ids are those of the query's cursors."""
    after = None if query.after is None else row_in(query.after)
    before = None if query.before is None else row_in(query.before)
    return rag.CursorPage(query.limit, query.order == "desc", after, before)


def _read_labels(session: Session, base_ids: Sequence[str]) -> dict[str, dict[str, str]]:
    query = select(StoreLabels).where(StoreLabels.knowledge_base_id.in_(base_ids))
    return {row.knowledge_base_id: row.labels for row in session.scalars(query)}


def _first_labels(unit: Unit, base_id: str, labels: Mapping[str, str]) -> Mapping[str, str]:
    """Keep them, unless a request before this retry did, and they may have changed since."""
    unit.lock(f"openai_files.store.{base_id}")
    row = unit.session.get(StoreLabels, base_id)
    if row is not None:
        return dict(row.labels)
    unit.session.add(StoreLabels(knowledge_base_id=base_id, labels=dict(labels)))
    return labels


def _write_labels(unit: Unit, base_id: str, labels: Mapping[str, str]) -> None:
    unit.lock(f"openai_files.labels.{base_id}")
    unit.session.merge(StoreLabels(knowledge_base_id=base_id, labels=dict(labels)))


def render(base: rag.BaseEntry, labels: Mapping[str, str]) -> StoreOut:
    """A vector store as clients see it."""
    counts = counts_of(base.statuses)
    return StoreOut(
        id=store_name(base.id),
        created_at=int(base.created_at.timestamp()),
        name=base.name,
        description=base.description,
        usage_bytes=base.size_bytes,
        file_counts=counts,
        status="in_progress" if counts.in_progress else "completed",
        metadata=dict(labels),
    )


def counts_of(statuses: Mapping[str, int], cancelled: int = 0) -> FileCounts:
    """Documents by status, as files are counted."""
    return FileCounts(
        in_progress=statuses.get("processing", 0),
        completed=statuses.get("completed", 0),
        failed=statuses.get("failed", 0),
        cancelled=cancelled,
        total=sum(statuses.values()) + cancelled,
    )
