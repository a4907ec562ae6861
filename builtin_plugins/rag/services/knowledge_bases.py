"""Knowledge bases: make, find, change, delete. Every query goes through the caller's scope."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import (
    CTE,
    Integer,
    Select,
    bindparam,
    func,
    insert,
    literal_column,
    or_,
    select,
)
from sqlalchemy.orm import Session

from builtin_plugins.rag.errors import DependentPipelines, KnowledgeBaseNotFound, NotOwner
from builtin_plugins.rag.metadata.fields import BUILT_IN, checked_date_field, fields_of
from builtin_plugins.rag.models import Document, KnowledgeBase, Pipeline, PipelineSource
from builtin_plugins.rag.rights.reading import read_binds, readable, readable_by_binds
from builtin_plugins.rag.schemas import (
    KnowledgeBaseCreate,
    KnowledgeBaseOut,
    KnowledgeBaseQuery,
    KnowledgeBaseUpdate,
)
from builtin_plugins.rag.schemas_receipts import Receipt
from builtin_plugins.rag.services.graphs import check_graph, tell_of_graph
from builtin_plugins.rag.services.receipts import SIGNER, Signer, of_base
from builtin_plugins.rag.services.removal import delete_base
from builtin_plugins.rag.services.sharing import (
    limit_naming,
    note_sharing,
    owner_and_scope,
    share,
    share_anew,
    sharing_of,
)
from kernel.sdk import Caller, Prepared, Scope, Unit, audit, scope_of, utc_now
from kernel.sdk.accounts import visible
from kernel.sdk.storage import page_of, read_page


def find(session: Session, scope: Scope, kb_id: str, *, lock: bool = False) -> KnowledgeBase:
    """A knowledge base that the caller may see. Raises KnowledgeBaseNotFound, also for an invisible one."""
    query = select(KnowledgeBase).where(KnowledgeBase.id == kb_id, scope.sees(KnowledgeBase))
    # Blocks changes, but not an ingestion, which only needs the row to stay.
    locked_query = query.with_for_update(key_share=True)
    base: KnowledgeBase | None = session.scalar(locked_query if lock else query)
    if base is None:
        raise KnowledgeBaseNotFound()
    return base


def find_own(session: Session, scope: Scope, kb_id: str, *, lock: bool = False) -> KnowledgeBase:
    """A knowledge base that the caller may change. Raises KnowledgeBaseNotFound, NotOwner."""
    base = find(session, scope, kb_id, lock=lock)
    if not scope.owns(base):
        raise NotOwner()
    return base


async def create(
    caller: Caller, body: KnowledgeBaseCreate, model: str, base_id: str | None = None
) -> KnowledgeBaseOut:
    """A new knowledge base of the caller, embedded by `model`; one that has this id already stays as it is.

    Raises Unprocessable, NotInTeam.
    """
    check_graph(caller.platform, body.graph)
    await limit_naming(caller, body)
    owner_id, scope = await owner_and_scope(caller, body.owner_id, "owner_id")
    base = KnowledgeBase(
        id=base_id or str(uuid.uuid4()),
        name=body.name,
        description=body.description,
        embedding_model=model,
        llm_model=body.llm_model,
        chunk_size=body.chunk_size,
        chunk_overlap=body.chunk_overlap,
        graph=body.graph,
        owner_id=owner_id,
        publishing=body.publishing,
        date_field=checked_date_field(BUILT_IN, body.date_field),
        accept_dates=body.accept_dates,
        created_at=utc_now(),
    )
    await caller.platform.database.write(_add, caller, scope, base, body)
    return render(base, 0, 0)


def _add(unit: Unit, caller: Caller, scope: Scope, base: KnowledgeBase, body: KnowledgeBaseCreate) -> None:
    share(unit, caller.platform, base, scope, body)
    unit.lock(f"rag.knowledge_base.{base.id}")
    if unit.session.scalar(select(KnowledgeBase.id).where(KnowledgeBase.id == base.id)) is not None:
        return
    unit.session.execute(insert(_BASE), {name: getattr(base, name) for name in _FIELDS})
    action, after = "rag.knowledge_base.created", {"name": base.name, **sharing_of(base)}
    audit(unit, action, "knowledge_base", base.id, after=after, origin=caller.origin)


async def list_page(caller: Caller, query: KnowledgeBaseQuery) -> tuple[list[KnowledgeBaseOut], int]:
    """The visible knowledge bases, oldest first, and how many there are."""
    scope = await scope_of(caller.platform, caller.principal)
    values = {
        **scope.binds,
        **read_binds(scope),
        "by": query.owner_id,
        "limit": query.limit,
        "offset": query.offset,
    }
    rows, total = await caller.platform.database.read(read_page, _PAGE, values)
    return _OUTS.validate_python(rows), total


async def get(caller: Caller, kb_id: str) -> KnowledgeBaseOut:
    """One knowledge base with its counts. Raises KnowledgeBaseNotFound, also for an invisible one."""
    scope = await scope_of(caller.platform, caller.principal)
    row = await caller.platform.database.read(
        _ONE.first, {**scope.binds, **read_binds(scope), "kb_id": kb_id}
    )
    if row is None:
        raise KnowledgeBaseNotFound()
    return KnowledgeBaseOut(**row)


ApplyDates = Callable[[Unit, str, int | None], object]
"""Queues what lets the dates of a knowledge base's texts count, or no longer; takes its id and an owner's."""


async def update(
    caller: Caller, kb_id: str, change: KnowledgeBaseUpdate, apply_dates: ApplyDates
) -> KnowledgeBaseOut:
    """Change name, description, model or visibility in place; documents and vectors stay as they are.

    Raises KnowledgeBaseNotFound, NotOwner, Unprocessable, NotInTeam.
    """
    await limit_naming(caller, change)
    scope = await scope_of(caller.platform, caller.principal)
    return await caller.platform.database.write(_update, caller, scope, kb_id, change, apply_dates)


def _update(
    unit: Unit,
    caller: Caller,
    scope: Scope,
    kb_id: str,
    change: KnowledgeBaseUpdate,
    apply_dates: ApplyDates,
) -> KnowledgeBaseOut:
    platform, base = caller.platform, find_own(unit.session, scope, kb_id, lock=True)
    for field in ("name", "description", "llm_model", "publishing"):
        value = getattr(change, field)
        if field in change.model_fields_set and (value is not None or field == "llm_model"):
            setattr(base, field, value)
    if "date_field" in change.model_fields_set:
        base.date_field = checked_date_field(fields_of(unit.session, kb_id), change.date_field)
    if change.accept_dates is not None and change.accept_dates != base.accept_dates:
        base.accept_dates = change.accept_dates
        apply_dates(unit, kb_id, scope.account_id or base.owner_id)
    before = sharing_of(base)
    share_anew(unit, platform, base, scope, change)
    note_sharing(unit, caller, "knowledge_base", base, before)
    if change.graph is not None:
        check_graph(platform, change.graph)
        base.graph = change.graph
        unit.session.flush()
        tell_of_graph(platform, unit, base)
    counts = _counts(unit.session, scope, [kb_id])
    return render(base, *counts.get(kb_id, (0, 0)))


async def remove(caller: Caller, kb_id: str, confirmed: Sequence[str]) -> Receipt:
    """Delete with all documents and vectors; returns the receipt.

    Raises DependentPipelines unless exactly those are confirmed.
    Other accounts' pipelines stay and are not mentioned: they answer from their remaining knowledge bases.
    """
    scope = await scope_of(caller.platform, caller.principal)
    signer = caller.platform.resource(SIGNER)
    return await caller.platform.database.write(_remove, caller, signer, scope, kb_id, confirmed)


def _remove(
    unit: Unit, caller: Caller, signer: Signer, scope: Scope, kb_id: str, confirmed: Sequence[str]
) -> Receipt:
    base = find_own(unit.session, scope, kb_id, lock=True)
    dependents = _dependents(unit.session, scope, base)
    if dependents and {p.id for p in dependents} != set(confirmed):
        raise _refusal(dependents)
    for pipeline in dependents:
        unit.session.delete(pipeline)
    delete_base(unit, caller.platform, base)
    receipt = of_base(unit, caller, signer, base, scope)
    audit(
        unit,
        "rag.knowledge_base.deleted",
        "knowledge_base",
        kb_id,
        before={"name": base.name},
        origin=caller.origin,
    )
    return receipt


def _dependents(session: Session, scope: Scope, base: KnowledgeBase) -> Sequence[Pipeline]:
    """The pipelines over a knowledge base that the caller may change. If it is theirs, these are only their
    own pipelines, even if they are an administrator.
    """
    using = select(PipelineSource.pipeline_id).where(PipelineSource.knowledge_base_id == base.id)
    query = select(Pipeline).where(Pipeline.id.in_(using)).order_by(Pipeline.name)
    if not scope.everything or base.owner_id == scope.account_id:
        query = query.where(Pipeline.owner_id == scope.account_id)
    return session.scalars(query).all()


def _refusal(dependents: Sequence[Pipeline]) -> DependentPipelines:
    """The error that names the pipelines in the way."""
    listed = [{"pipeline_id": p.id, "name": p.name} for p in dependents]
    message = (
        "Pipelines use this knowledge base; "
        "list exactly these in confirm_delete_pipeline_ids to delete them too"
    )
    return DependentPipelines({"message": message, "dependent_pipelines": listed})


def _counts(session: Session, scope: Scope, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
    """The completed documents that the scope may read and their vectors, by knowledge base."""
    query = (
        select(Document.knowledge_base_id, func.count(), func.sum(Document.chunk_count))
        .where(Document.knowledge_base_id.in_(ids), Document.status == "completed")
        .where(readable(scope))
        .group_by(Document.knowledge_base_id)
    )
    return {kb: (int(count), int(chunks or 0)) for kb, count, chunks in session.execute(query)}


def render(base: KnowledgeBase, documents: int, vectors: int) -> KnowledgeBaseOut:
    """The record as clients see it."""
    fields = {name: getattr(base, name) for name in _FIELDS}
    return KnowledgeBaseOut(**fields, document_count=documents, vector_count=vectors)


_FIELDS = (
    "id",
    "name",
    "description",
    "embedding_model",
    "llm_model",
    "chunk_size",
    "chunk_overlap",
    "graph",
    "owner_id",
    "visibility",
    "team_id",
    "organization_id",
    "publishing",
    "date_field",
    "accept_dates",
    "created_at",
)

# Frequent queries are built once and select columns, which are cheaper to load than objects.
_BASE: Any = KnowledgeBase.__table__
_COLUMNS = [_BASE.c[name] for name in _FIELDS]


def _single_base() -> Prepared:
    page = select(*_COLUMNS).where(_BASE.c.id == bindparam("kb_id"), visible(_BASE.c)).cte("page")
    return Prepared(_counted(page, select(page).select_from(page)))


def _page() -> Prepared:
    by = bindparam("by", type_=Integer())
    of_owner = or_(by.is_(None), _BASE.c.owner_id == by, _BASE.c.owner_id.is_(None))
    records = select(*_COLUMNS).where(visible(_BASE.c), of_owner)
    return page_of(records, "created_at", "id", extend=_counted)


def _counted(page: CTE, rows: Select[Any]) -> Select[Any]:
    """Each row of the page with its counts of readable completed documents and their vectors."""
    documents: Any = Document.__table__
    completed = (
        select(
            documents.c.knowledge_base_id,
            func.count().label("documents"),
            func.sum(documents.c.chunk_count).label("vectors"),
        )
        .where(documents.c.knowledge_base_id.in_(select(page.c.id)))
        .where(documents.c.status == literal_column("'completed'"), readable_by_binds(documents.c))
        .group_by(documents.c.knowledge_base_id)
        .subquery("completed")
    )
    return rows.add_columns(
        func.coalesce(completed.c.documents, 0).label("document_count"),
        func.coalesce(completed.c.vectors, 0).label("vector_count"),
    ).outerjoin(completed, completed.c.knowledge_base_id == page.c.id)


_ONE, _PAGE = _single_base(), _page()
_OUTS = TypeAdapter(list[KnowledgeBaseOut])
