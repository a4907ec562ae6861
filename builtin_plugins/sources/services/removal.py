"""What goes with a source, a document or a knowledge base."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from pydantic import BaseModel
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.rag import api as rag
from builtin_plugins.sources.errors import DocumentsUnavailable
from builtin_plugins.sources.models import ItemRecord, RunRecord, SourceRecord
from builtin_plugins.sources.services.applying import drop_item, service_caller
from builtin_plugins.sources.services.credentials import forget_credential
from builtin_plugins.sources.services.rights.granting import drop_holder, key_of
from builtin_plugins.sources.services.states import ACTIVE
from kernel.sdk import Job, NotFound, Platform, Unavailable, Unit, utc_now

_BATCH: Final = 100
_LATER: Final = timedelta(minutes=5)
"""When a removal is tried again whose knowledge base is in the trash."""


class SourceRemovalPayload(BaseModel):
    """The source that is being removed."""

    source_id: str


async def remove_source(platform: Platform, payload: SourceRemovalPayload) -> None:
    """Delete or release the documents of a source, then the source. Can be killed and repeated."""
    source = await platform.database.write(_begin, payload.source_id)
    if source is None:
        return
    while items := await platform.database.read(_some_items, source.id):
        for item in items:
            try:
                await _part_with(platform, source, item)
            except NotFound:  # its knowledge base is in the trash, or gone with this source
                await platform.database.write(_postpone, source.id)
                return
    await platform.database.write(_end, platform, source.id)


def _begin(unit: Unit, source_id: str) -> SourceRecord | None:
    """End its runs: what one stored after that would stay behind. Raises Unavailable while one works."""
    source: SourceRecord | None = unit.session.get(SourceRecord, source_id, with_for_update=True)
    if source is None:
        return None
    for run in unit.session.scalars(select(RunRecord).where(RunRecord.source_id == source_id)):
        if run.state == "running":
            raise Unavailable("A run of the source is still ending")
        if run.state in (*ACTIVE, "needs_confirmation"):
            run.state, run.finished_at = "cancelled", utc_now()
    return source


def _some_items(session: Session, source_id: str) -> Sequence[ItemRecord]:
    mine = select(ItemRecord).where(ItemRecord.source_id == source_id)
    return session.scalars(mine.order_by(ItemRecord.id).limit(_BATCH)).all()


async def _part_with(platform: Platform, source: SourceRecord, item: ItemRecord) -> None:
    """Raises NotFound, DocumentsUnavailable."""
    caller, base = service_caller(platform), source.knowledge_base_id
    if source.leaving == "delete":
        await drop_item(caller, base, item.id)
    else:  # even of an item without one: a run that was killed may not have noted it
        path, key = item.path, key_of(item.id)
        answer = await platform.hooks.ask(
            rag.release_document, caller=caller, knowledge_base_id=base, key=key, path=path
        )
        if answer is None:
            raise DocumentsUnavailable()

    def forget(unit: Unit) -> None:
        row = unit.session.get(ItemRecord, item.id)
        if row is not None:
            unit.session.delete(row)

    await platform.database.write(forget)


def _postpone(unit: Unit, source_id: str) -> None:
    source = unit.session.get(SourceRecord, source_id, with_for_update=True)
    if source is not None:
        source.next_at = unit.now() + _LATER


def _end(unit: Unit, platform: Platform, source_id: str) -> None:
    source = unit.session.get(SourceRecord, source_id)
    if source is not None:
        drop_holder(unit, platform, source)
        unit.session.delete(source)


REMOVE_SOURCE = Job("sources.remove", SourceRemovalPayload, remove_source, retries=50)


def remove_with(
    platform: Platform, unit: Unit, base: str, document_id: str | None
) -> Sequence[rag.RemovedPart]:
    """What goes in the unit that deletes a document, or the whole knowledge base.

    An item whose document a person deletes stays away until it changes at its source.
    """
    counts = count_with(unit.session, base, document_id)
    if document_id is None:
        mine = select(SourceRecord).where(SourceRecord.knowledge_base_id == base)
        for source in unit.session.scalars(mine):
            forget_credential(platform, unit, source)
            drop_holder(unit, platform, source)
            unit.session.delete(source)
    else:
        of = select(ItemRecord).where(ItemRecord.document_id == document_id)
        for item in unit.session.scalars(of):
            item.document_id, item.stored_name, item.state = None, None, "deleted_here"
    unit.session.flush()
    return [rag.RemovedPart(place, number) for place, number in counts.items()]


def count_with(session: Session, base: str, document_id: str | None) -> dict[str, int]:
    """How much there is, by place."""
    if document_id is None:
        mine = select(func.count()).where(SourceRecord.knowledge_base_id == base)
        return {"sources": session.scalar(mine) or 0}
    of = select(func.count()).where(ItemRecord.document_id == document_id)
    return {"source_items": session.scalar(of) or 0}
