"""Load pipelines and knowledge bases for frequent work: questions, searches, uploads.

The statements are built once. The results belong to no session: they are read-only.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sqlalchemy import Select, bindparam, select
from sqlalchemy.orm import Session

from builtin_plugins.documents.api import Chunk, Pages, Sections
from builtin_plugins.rag.answering.languages import LanguageDetector
from builtin_plugins.rag.errors import KnowledgeBaseNotFound, NotOwner, PipelineNotFound
from builtin_plugins.rag.models import KnowledgeBase, Pipeline, PipelineSource
from builtin_plugins.vectors.api import CONTEXT, LANGUAGE, Point
from kernel.sdk import Caller, Platform, Prepared, ResourceKey, Scope, scope_of
from kernel.sdk.accounts import visible

_BASE: Any = KnowledgeBase.__table__
_PIPELINE: Any = Pipeline.__table__
_SOURCE: Any = PipelineSource.__table__

_ONE_BASE = Prepared(select(*_BASE.c).where(_BASE.c.id == bindparam("wanted"), visible(_BASE.c)))
_ONE_BASE_HELD = Prepared(
    select(*_BASE.c)
    .where(_BASE.c.id == bindparam("wanted"), visible(_BASE.c))
    # Blocks changes, but not an ingestion, which only needs the row to stay.
    .with_for_update(key_share=True)
)
_ONE_PIPELINE = Prepared(
    select(*_PIPELINE.c).where(_PIPELINE.c.id == bindparam("wanted"), visible(_PIPELINE.c))
)
_BASES = Prepared(
    select(*_BASE.c)
    .join(_SOURCE, _SOURCE.c.knowledge_base_id == _BASE.c.id)
    .where(_SOURCE.c.pipeline_id == bindparam("wanted"), visible(_BASE.c))
    .order_by(_SOURCE.c.position)
)


async def knowledge_base(caller: Caller, kb_id: str) -> KnowledgeBase:
    """A knowledge base that the caller may see. Raises KnowledgeBaseNotFound, also for an invisible one."""
    return await _visible_base(caller, await scope_of(caller.platform, caller.principal), kb_id)


async def _visible_base(caller: Caller, scope: Scope, kb_id: str) -> KnowledgeBase:
    row = await caller.platform.database.read(_ONE_BASE.first, {**scope.binds, "wanted": kb_id})
    if row is None:
        raise KnowledgeBaseNotFound()
    return KnowledgeBase(**row)


async def own_knowledge_base(caller: Caller, kb_id: str) -> KnowledgeBase:
    """A knowledge base that the caller may change. Raises KnowledgeBaseNotFound, NotOwner."""
    scope = await scope_of(caller.platform, caller.principal)
    base = await _visible_base(caller, scope, kb_id)
    if not scope.owns(base):
        raise NotOwner()
    return base


def hold_own(session: Session, scope: Scope, kb_id: str) -> KnowledgeBase:
    """The same in a unit, which locks the knowledge base until its end."""
    row = _ONE_BASE_HELD.first(session, {**scope.binds, "wanted": kb_id})
    if row is None:
        raise KnowledgeBaseNotFound()
    base = KnowledgeBase(**row)
    if not scope.owns(base):
        raise NotOwner()
    return base


def seen_bases(scope: Scope) -> Select[str]:
    """A query for the ids of the knowledge bases that a scope sees."""
    return select(KnowledgeBase.id).where(scope.sees(KnowledgeBase))


def seen_among(session: Session, scope: Scope, base_ids: Sequence[str]) -> list[str]:
    """Which of these knowledge bases a scope sees."""
    mine = KnowledgeBase.id.in_(base_ids) & scope.sees(KnowledgeBase)
    return list(session.scalars(select(KnowledgeBase.id).where(mine).order_by(KnowledgeBase.id)))


async def pipeline(caller: Caller, pipeline_id: str) -> tuple[Pipeline, list[KnowledgeBase]]:
    """A pipeline and those of its knowledge bases that the caller may see, in their order.

    Raises PipelineNotFound, also for an invisible one.
    """
    scope = await scope_of(caller.platform, caller.principal)
    values = {**scope.binds, "wanted": pipeline_id}
    row = await caller.platform.database.read(_ONE_PIPELINE.first, values)
    if row is None:
        raise PipelineNotFound()
    bases = await caller.platform.database.read(_BASES.all, values)
    return Pipeline(**row), [KnowledgeBase(**base) for base in bases]


PLACE = ("page", "char_start", "char_end")
PAGES = "pages"
"""The key of the later pages that begin in a passage: missing for most, and in older passages."""
SECTIONS = "sections"
"""The key of the headings above a passage and above parts of it: missing without any, and in older ones."""


class Placed(Protocol):
    """Anything with a place in a document."""

    @property
    def page(self) -> int | None: ...

    @property
    def char_start(self) -> int: ...

    @property
    def char_end(self) -> int: ...

    @property
    def pages(self) -> Sequence[tuple[int, int | None]]: ...

    @property
    def sections(self) -> Sequence[tuple[int, str]]: ...


def place_of(item: Placed) -> dict[str, Any]:
    """A place in the form of a payload."""
    place = {name: getattr(item, name) for name in PLACE}
    more = {PAGES: list(item.pages), SECTIONS: list(item.sections)}
    return {**place, **{key: value for key, value in more.items() if value}}


def context_of(subject: str, sections: Sequence[tuple[int, str]]) -> str:
    """What is searched with a passage: what its document is about, and the headings above it."""
    above = sections[0][1] if sections and sections[0][0] == 0 else ""
    return "\n".join(filter(None, (subject, above)))


def subject_in(payload: Mapping[str, Any]) -> str:
    """What the document of a passage is about, without the headings above the passage; empty if unknown."""
    context: str = payload.get(CONTEXT, "")
    return context.removesuffix(context_of("", sections_of(payload))).rstrip("\n")


def payload_of(item: Placed, language: str | None, context: str) -> dict[str, Any]:
    """A passage's payload: its place, the language, and what is searched with it (`context_of`), if known."""
    fields = {LANGUAGE: language, CONTEXT: context}
    return {**place_of(item), **{key: value for key, value in fields.items() if value}}


_NAMESPACE = uuid.UUID("6d0ad5a6-8a0d-4f0e-9a52-0f3b6f4f1c9e")


def point_of(document_id: str, item: Chunk, vector: object, payload: Mapping[str, Any]) -> Point:
    """A passage as a stored point; its id is derived from its position."""
    return Point(
        id=str(uuid.uuid5(_NAMESPACE, f"{document_id}/{item.index}")),
        group=document_id,
        position=item.index,
        text=item.text,
        vector=vector,  # type: ignore[arg-type]  # a row of a float32 matrix
        payload=payload,
    )


def place_in(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The place from a larger payload, and what is searched with the passage."""
    place = {name: payload.get(name) for name in PLACE}
    return {**place, **{key: payload[key] for key in (PAGES, SECTIONS, CONTEXT) if key in payload}}


def pages_of(payload: Mapping[str, Any]) -> Pages:
    """The later pages that begin in a passage."""
    return tuple((start, page) for start, page in payload.get(PAGES, ()))


def sections_of(payload: Mapping[str, Any]) -> Sections:
    """The headings above a passage, and above parts of it."""
    return tuple((start, section) for start, section in payload.get(SECTIONS, ()))


LANGUAGES: ResourceKey[LanguageDetector] = ResourceKey("languages")


async def languages_of(platform: Platform, texts: Sequence[str]) -> list[str | None]:
    """The language of each text, detected from its beginning."""
    detector = platform.resource(LANGUAGES)
    return await asyncio.to_thread(lambda: [detector.of(text) if text.strip() else None for text in texts])
