"""Counts per value of documents' fields, over what the caller may see."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import and_
from sqlalchemy.orm import Session

from builtin_plugins.rag.filters.binding import (
    IN_PIPELINE,
    FilterSource,
    bind,
    field_named,
    fields_by_base,
)
from builtin_plugins.rag.filters.facets import FacetCounter
from builtin_plugins.rag.questions.asking import fixed_filter, sources_of
from builtin_plugins.rag.schemas_facets import FacetRequest, FacetsOut
from builtin_plugins.rag.services import knowledge_bases
from builtin_plugins.rag.services.identities import CURRENT
from builtin_plugins.rag.services.loading import seen_among
from kernel.sdk import Caller, Scope, scope_of

_IN_BODY = ("body", "filter")


async def count_in_base(caller: Caller, kb_id: str, request: FacetRequest) -> FacetsOut:
    """The documents of a knowledge base. Raises KnowledgeBaseNotFound, Unprocessable."""
    scope = await scope_of(caller.platform, caller.principal)

    def read(session: Session) -> FacetsOut:
        knowledge_bases.find(session, scope, kb_id)
        return _count(session, scope, [kb_id], request)

    return await caller.platform.database.read(read)


async def count_in_pipeline(caller: Caller, pipeline_id: str, request: FacetRequest) -> FacetsOut:
    """The documents that a pipeline answers from.

    Raises PipelineNotFound, KnowledgeBaseGone, Unprocessable.
    """
    pipeline, bases = await sources_of(caller, pipeline_id)
    scope = await scope_of(caller.platform, caller.principal)
    fixed = FilterSource(fixed_filter(pipeline), IN_PIPELINE, fields_gone=True)
    ids = [base.id for base in bases]
    return await caller.platform.database.read(_count_seen, scope, ids, request, fixed)


def _count_seen(
    session: Session, scope: Scope, base_ids: Sequence[str], request: FacetRequest, fixed: FilterSource
) -> FacetsOut:
    return _count(session, scope, seen_among(session, scope, base_ids), request, fixed)


def _count(
    session: Session, scope: Scope, base_ids: Sequence[str], request: FacetRequest, *more: FilterSource
) -> FacetsOut:
    fields = fields_by_base(session, base_ids)
    definitions = [
        field_named(fields, name, ("body", "fields", at)) for at, name in enumerate(request.fields)
    ]
    matching = bind(session, scope, base_ids, [FilterSource(request.filter, _IN_BODY), *more]).condition()
    counter = FacetCounter(session, base_ids, and_(CURRENT, matching), request.limit, request.dates)
    return FacetsOut(total=counter.total(), facets=[counter.facet(one) for one in definitions])
