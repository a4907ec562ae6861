"""The second half of a run: fetch what is new or has changed, rename what was moved, delete what is gone.

Each step is stored before the next, and can be repeated: a document is known by the id of its item's row, so
the same content again is the same version.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.rag import api as rag
from builtin_plugins.sources.errors import DocumentsUnavailable
from builtin_plugins.sources.models import ItemRecord, RunRecord, SourceRecord
from builtin_plugins.sources.protocol import (
    DocumentSource,
    ItemFault,
    ItemUnsuitable,
    SourceFault,
    SourceThrottled,
)
from builtin_plugins.sources.services.listing import gone_items, hold_run
from builtin_plugins.sources.services.opening import item_of
from builtin_plugins.sources.services.rights.directory import everyone_of
from builtin_plugins.sources.services.rights.granting import grant_items, key_of
from builtin_plugins.sources.services.rights.readers import document_readers
from builtin_plugins.sources.services.states import SourceEnded
from builtin_plugins.sources.settings import SourcesSettings
from kernel.sdk import (
    Caller,
    NotFound,
    PayloadTooLarge,
    Platform,
    Principal,
    Progress,
    TooManyRequests,
    Unavailable,
    Unit,
    UnsupportedMediaType,
)

_BATCH: Final = 64
_PAUSE: Final = 60.0
_REFUSED: Final = (UnsupportedMediaType, rag.EmptyDocument, PayloadTooLarge)


def service_caller(platform: Platform) -> Caller:
    """Who stores and deletes: the knowledge base's owner may change, and its sources stay."""
    return Caller(platform, Principal("service", "service:sources"))


class RunExecution:
    """What a run does once its listing is complete."""

    def __init__(self, platform: Platform, source: SourceRecord, run: RunRecord, progress: Progress) -> None:
        self._platform = platform
        self._caller = service_caller(platform)
        self._base = source.knowledge_base_id
        self._run = run
        self._progress = progress
        self._at_once = platform.settings_of(SourcesSettings).sources_at_once

    async def run(self, opened: DocumentSource) -> None:
        """Do it all. Raises SourceFault, SourceEnded."""
        read = self._platform.database.read
        while rows := await read(self._waiting):
            await self._fetch_all(opened, rows)
        while rows := await read(self._renamed):
            for row in rows:
                await self._rename(row)
        while rows := await read(self._gone):
            for row in rows:
                await self._remove(row)

    async def _fetch_all(self, opened: DocumentSource, rows: Sequence[ItemRecord]) -> None:
        """Fetch some at once. After a fault, those under way are ended before it is raised."""
        turns = asyncio.Semaphore(self._at_once)

        async def take(row: ItemRecord) -> None:
            async with turns:
                await self._fetch(opened, row)

        tasks = [asyncio.create_task(take(row)) for row in rows]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _waiting(self, session: Session) -> Sequence[ItemRecord]:
        condition = (ItemRecord.source_id == self._run.source_id) & (ItemRecord.state == "waiting")
        query = select(ItemRecord).where(condition, ~gone_items(self._run))
        return session.scalars(query.order_by(ItemRecord.id).limit(_BATCH)).all()

    def _renamed(self, session: Session) -> Sequence[ItemRecord]:
        mine = (ItemRecord.source_id == self._run.source_id) & (ItemRecord.state == "stored")
        other = ItemRecord.document_id.is_not(None) & (ItemRecord.stored_name != ItemRecord.name)
        query = select(ItemRecord).where(mine, other, ~gone_items(self._run))
        return session.scalars(query.order_by(ItemRecord.id).limit(_BATCH)).all()

    def _gone(self, session: Session) -> Sequence[ItemRecord]:
        query = select(ItemRecord).where(gone_items(self._run))
        return session.scalars(query.order_by(ItemRecord.id).limit(_BATCH)).all()

    async def _fetch(self, opened: DocumentSource, row: ItemRecord) -> None:
        incoming = IncomingContent()
        try:
            async with opened.content(item_of(row)) as pieces:
                readers = await self._platform.database.read(self._readers, row.id)
                document = rag.PluginDocument(
                    key_of(row.id), row.name, incoming.read(pieces), readers, _metadata_of(row)
                )
                stored = await self._platform.hooks.ask(
                    rag.put_document, caller=self._caller, knowledge_base_id=self._base, document=document
                )
        except ItemFault as fault:
            await self._note_fault(row, fault)
        except rag.StorageLimit as error:
            await self._platform.database.write(self._failed, row, str(error.detail))
        except _REFUSED as error:
            reason = "it is empty" if isinstance(error, rag.EmptyDocument) else str(error.detail)
            await self._skip(row, reason, incoming.size)
        except TooManyRequests as error:
            raise SourceThrottled(float(error.headers.get("Retry-After", _PAUSE))) from None
        except NotFound:
            raise SourceEnded from None
        except FaultyContent:
            if isinstance(incoming.fault, SourceFault):
                raise incoming.fault from None
            if incoming.fault is not None:
                await self._note_fault(row, incoming.fault)
        else:
            if stored is None:
                raise DocumentsUnavailable()
            await self._platform.database.write(self._stored, row, stored, incoming.size, readers)
        self._progress.report(message="Fetching")

    def _readers(self, session: Session, item_id: str) -> rag.DocumentReaders | None:
        source, row = session.get(SourceRecord, self._run.source_id), session.get(ItemRecord, item_id)
        if source is None or row is None:
            raise SourceEnded
        return _readers_of(session, source, row)

    async def _describe(self, row: ItemRecord, document_id: str) -> None:
        """Say of a document that is there what the source knows of it now."""
        with suppress(NotFound):  # deleted meanwhile
            await self._platform.hooks.ask(
                rag.describe_document,
                caller=self._caller,
                knowledge_base_id=self._base,
                document_id=document_id,
                metadata=_metadata_of(row),
            )

    def _stored(
        self, unit: Unit, row: ItemRecord, document_id: str, size: int, readers: rag.DocumentReaders | None
    ) -> None:
        run, item = self._hold(unit, row)
        if row.document_id is None:
            run.added += 1
        else:
            run.changed += 1
        run.fetched_bytes += size
        item.etag, item.state, item.reason = row.listed_etag, "stored", None
        item.document_id, item.stored_name = document_id, row.name
        unit.session.flush()
        source = unit.session.get_one(SourceRecord, run.source_id)
        if source.is_guarded and _readers_of(unit.session, source, item) != readers:  # changed meanwhile
            grant_items(unit, self._platform, source, [item])

    def _failed(self, unit: Unit, row: ItemRecord, reason: str) -> None:
        run, item = self._hold(unit, row)
        run.failed += 1
        item.state, item.reason = "failed", reason[:500]

    async def _note_fault(self, row: ItemRecord, fault: ItemFault) -> None:
        if isinstance(fault, ItemUnsuitable):
            await self._skip(row, str(fault), 0)
        else:
            await self._platform.database.write(self._failed, row, str(fault))

    async def _skip(self, row: ItemRecord, reason: str, size: int) -> None:
        """What it has become is no document: what it was goes."""
        await self._drop(row)  # even if none is noted: a run that was killed may have stored one
        await self._platform.database.write(self._skipped, row, reason, size)

    def _skipped(self, unit: Unit, row: ItemRecord, reason: str, size: int) -> None:
        run, item = self._hold(unit, row)
        run.skipped += 1
        run.fetched_bytes += size
        item.etag, item.state, item.reason = row.listed_etag, "skipped", reason[:500]
        item.document_id = item.stored_name = None

    def _hold(self, unit: Unit, row: ItemRecord) -> tuple[RunRecord, ItemRecord]:
        run = hold_run(unit, self._run.id)
        item: ItemRecord | None = unit.session.get(ItemRecord, row.id, with_for_update=True)
        if item is None:
            raise SourceEnded
        return run, item

    async def _rename(self, row: ItemRecord) -> None:
        try:
            await self._platform.hooks.ask(
                rag.rename_document,
                caller=self._caller,
                knowledge_base_id=self._base,
                key=key_of(row.id),
                filename=row.name,
            )
        except NotFound:
            raise SourceEnded from None
        if row.document_id is not None:
            await self._describe(row, row.document_id)

        def note(unit: Unit) -> None:
            self._hold(unit, row)[1].stored_name = row.name

        await self._platform.database.write(note)

    async def _remove(self, row: ItemRecord) -> None:
        await self._drop(row)
        await self._platform.database.write(self._removed, row)
        self._progress.report(message="Deleting what is gone")

    async def _drop(self, row: ItemRecord) -> None:
        try:
            await drop_item(self._caller, self._base, row.id)
        except NotFound:
            raise SourceEnded from None

    def _removed(self, unit: Unit, row: ItemRecord) -> None:
        """A row that a filter leaves out stays, to show why."""
        run, item = self._hold(unit, row)
        run.gone += row.document_id is not None
        if row.listed_by != run.listing:
            unit.session.delete(item)
            return
        item.document_id, item.stored_name, item.is_gone = None, None, False
        item.state, item.reason = "skipped", row.reason


def _metadata_of(row: ItemRecord) -> Mapping[str, Any]:
    """What the source knows of an item, for the fields that its knowledge base has."""
    modified = None if row.modified_at is None else row.modified_at.date().isoformat()
    values = {"source_path": row.path, "link": row.link, "modified": modified, **row.details}
    return {name: value for name, value in values.items() if value is not None}


def _readers_of(session: Session, source: SourceRecord, row: ItemRecord) -> rag.DocumentReaders | None:
    """Who may read a document as soon as it is stored; None for everybody who sees the knowledge base."""
    if not source.is_guarded:
        return None
    return document_readers(source, row.readers, everyone_of(session, source.id))


async def drop_item(caller: Caller, base: str, item_id: str) -> None:
    """Delete an item's document with all its versions. Raises NotFound, DocumentsUnavailable."""
    dropped = await caller.platform.hooks.ask(
        rag.drop_document, caller=caller, knowledge_base_id=base, key=key_of(item_id)
    )
    if dropped is None:
        raise DocumentsUnavailable()


class FaultyContent(Unavailable):
    """The source failed while its content was read; `IncomingContent.fault` says how."""


class IncomingContent:
    """Counts the bytes of a source, and keeps its fault: another plugin reads them."""

    def __init__(self) -> None:
        self.size = 0
        self.fault: ItemFault | SourceFault | None = None

    async def read(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The same bytes. Raises FaultyContent."""
        try:
            async for piece in pieces:
                self.size += len(piece)
                yield piece
        except (ItemFault, SourceFault) as fault:
            self.fault = fault
            raise FaultyContent() from None
