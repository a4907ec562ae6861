"""Reading a knowledge base out of a file, in a job that may be killed anywhere.

New ids are derived from the new knowledge base's id and the ids in the file, so a second run continues where
the first one stopped and duplicates nothing. Vectors are kept if the same engine embeds here; otherwise the
passages are embedded again. If the file is damaged or the job is cancelled, the new knowledge base is
removed.
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel
from sqlalchemy import select

from builtin_plugins.rag import hookspecs
from builtin_plugins.rag.errors import EngineChanged
from builtin_plugins.rag.events import DocumentIngested
from builtin_plugins.rag.exchange.bundle import BundledDocument, BundledPassage, BundleReader, broken
from builtin_plugins.rag.exchange.opening import settings_in
from builtin_plugins.rag.models import Document, KnowledgeBase, import_holder
from builtin_plugins.rag.services.deletions import forget_ended, is_deleted
from builtin_plugins.rag.services.embedding import embed, engine_changed
from builtin_plugins.rag.services.graphs import builds_graphs, tell_of_graph
from builtin_plugins.rag.services.models import check_embedding_model
from builtin_plugins.rag.services.outcomes import note_outcome
from builtin_plugins.rag.services.places import place_of
from builtin_plugins.rag.services.records import find_same, write_kept
from builtin_plugins.rag.services.removal import delete_base
from builtin_plugins.rag.services.telling import TELL_LANGUAGES, TellPayload
from builtin_plugins.rag.settings import RagSettings
from builtin_plugins.rag.trees.job import queue_one, visible
from kernel.sdk import (
    Caller,
    EngineMismatch,
    JobFailed,
    LongJob,
    Platform,
    Point,
    Progress,
    Staged,
    Unit,
    Unprocessable,
    audit,
    held_blobs_of,
    utc_now,
)

if TYPE_CHECKING:
    import numpy as np

_BATCH = 96
_MEGABYTE = 1 << 20
_UNPACKED = 20
"""How many times the maximum file size the unpacked contents may have."""
_NAMESPACE = uuid.UUID("5c3b1a52-2f0e-4f0b-8a2e-6f6f5d9d7a10")


class ImportPayload(BaseModel):
    """The new knowledge base, and the file that it comes from."""

    knowledge_base_id: str
    sha256: str

    @property
    def holder(self) -> str:
        """Who holds the file until it is read."""
        return import_holder(self.knowledge_base_id)


class ImportStarted(BaseModel):
    """The import that was started."""

    message: str
    knowledge_base_id: str
    job_id: str


class _Gone(Exception):
    """The knowledge base was deleted during the import."""


class _Deleted(Exception):
    """The document was deleted, or uploaded by somebody, during the import."""


class _Reembedded(Exception):
    """The embedding model was changed during the import."""


async def start(caller: Caller, staged: Staged) -> ImportStarted:
    """Make the knowledge base, keep the file and queue the job, in one transaction.

    Raises BundleBroken, Unavailable.
    """
    platform = caller.platform
    wanted = await settings_in(platform, staged.path, _most_bytes(platform))
    name = await check_embedding_model(platform, wanted.embedding_model)
    base = KnowledgeBase(
        id=str(uuid.uuid4()),
        **wanted.model_dump(exclude={"embedding_model", "graph"}),
        embedding_model=name,
        graph=wanted.graph and builds_graphs(platform),
        owner_id=caller.id,
        visibility="private",
        importing=True,
        created_at=utc_now(),
    )
    payload = ImportPayload(knowledge_base_id=base.id, sha256=staged.sha256)

    def write(unit: Unit) -> str:
        unit.session.add(base)
        unit.session.flush()
        platform.blobs.keep(unit, staged, payload.holder)
        if base.graph:
            tell_of_graph(platform, unit, base)
        audit(unit, "rag.knowledge_base.imported", "knowledge_base", base.id, origin=caller.origin)
        return unit.enqueue(IMPORT, payload, owner_id=caller.id, subject=base.id)

    job_id = await platform.database.write(write)
    return ImportStarted(message="Started; follow it at /v1/jobs", knowledge_base_id=base.id, job_id=job_id)


def _most_bytes(platform: Platform) -> int:
    return platform.settings_of(RagSettings).max_import_size_mb * _MEGABYTE * _UNPACKED


async def run(platform: Platform, payload: ImportPayload, progress: Progress) -> str | None:
    """Import document after document; returns the knowledge base's path."""
    try:
        if await platform.database.write(_begin, payload):
            await _read(platform, payload, progress)
    except _Gone:
        await platform.database.write(_let_go, platform, payload)
        return None
    except (Unprocessable, EngineMismatch, EngineChanged) as error:
        await abandon(platform, payload)
        raise JobFailed(_text(error)) from None
    return f"/v1/rag/knowledge-bases/{payload.knowledge_base_id}"


def _begin(unit: Unit, payload: ImportPayload) -> bool:
    """Whether there is anything to import: if the file was released, an earlier run completed the import."""
    mine = select(KnowledgeBase).where(KnowledgeBase.id == payload.knowledge_base_id)
    base: KnowledgeBase | None = unit.session.scalar(mine.with_for_update(key_share=True))
    if base is None:
        raise _Gone
    if not held_blobs_of(unit.session, payload.holder):
        return False
    base.importing = True  # an earlier release, which did not set it, may have begun the import
    return True


async def _read(platform: Platform, payload: ImportPayload, progress: Progress) -> None:
    path = await platform.blobs.local(payload.sha256)
    with await asyncio.to_thread(BundleReader, path, _most_bytes(platform)) as bundle:
        while not await _Import(platform, payload, bundle, progress).run():
            pass  # the embedding model was changed: begin again


@dataclass(frozen=True)
class _Part:
    """Consecutive passages of a document: the position of the first, their new ids, texts and vectors."""

    start: int
    ids: list[str]
    passages: list[BundledPassage]
    vectors: np.ndarray


class _Import:
    """One run over one file."""

    def __init__(
        self, platform: Platform, payload: ImportPayload, bundle: BundleReader, progress: Progress
    ) -> None:
        self._platform = platform
        self._payload = payload
        self._bundle = bundle
        self._progress = progress
        self._revision: int | None = None
        self._new: dict[str, str] = {}
        self._parents = {one.id: self._id_of(one) for one in bundle.manifest.documents}

    async def run(self) -> bool:
        """Import whatever is missing; False if it has to begin again. Raises BundleBroken, _Gone."""
        documents = self._bundle.manifest.documents
        self._base = await self._platform.database.write(self._held)
        self._revision = self._base.revision
        keep = bool(documents) and await self._is_same_engine()
        self._progress.report(0, total=len(documents), unit="documents", message="Importing documents")
        try:
            for document in documents:
                with suppress(_Deleted):
                    await self._take(document, keep)
                self._progress.advance()
            await self._platform.database.write(self._finish)
        except _Reembedded:
            return False
        return True

    async def _is_same_engine(self) -> bool:
        """Whether vectors made here can be compared with those in the file."""
        probe = await embed(self._platform, self._base.embedding_model, ["probe"], "passage")
        manifest = self._bundle.manifest
        return (probe.engine, probe.vectors.shape[1]) == (manifest.engine, manifest.dimension)

    async def _take(self, document: BundledDocument, keep: bool) -> None:
        new_id = self._new[document.id] = self._id_of(document)
        wanted = await self._begin(document, new_id)
        written = sys.maxsize
        if wanted:
            written = await self._platform.vectors.staged(self._base.collection, new_id)
        batches, position = self._bundle.batches(document, _BATCH), 0
        while (batch := await asyncio.to_thread(next, batches, None)) is not None:
            passages, vectors = batch
            ids = [_point_id(new_id, number) for number in range(position, position + len(passages))]
            self._new.update(zip((one.id for one in passages), ids, strict=True))
            skip = max(written - position, 0)
            if skip < len(passages):
                part = _Part(position + skip, ids[skip:], passages[skip:], vectors[skip:])
                await self._put(new_id, part, keep)
            position += len(passages)
        if wanted:
            await self._platform.database.write(self._publish, document, new_id)

    async def _begin(self, document: BundledDocument, new_id: str) -> bool:
        """Write the document's row and keep its original; False if an earlier run has completed it."""
        staged = await self._platform.blobs.stage(self._original(document), document.size_bytes)
        try:
            if (staged.sha256, staged.size) != (document.sha256, document.size_bytes):
                raise broken(f"the original of {document.filename} is not the one that was exported")
            return await write_kept(self._platform, self._add, document, new_id, staged)
        finally:
            staged.discard()

    async def _original(self, document: BundledDocument) -> AsyncIterator[bytes]:
        pieces = self._bundle.original(document)
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            yield piece

    def _add(self, unit: Unit, document: BundledDocument, new_id: str, staged: Staged) -> bool:
        self._held(unit)
        known: Document | None = unit.session.get(Document, new_id)
        if known is not None:
            return known.status == "processing"
        same = find_same(unit, self._base.id, document.sha256)
        if same is not None:
            self._new[document.id] = same
            raise _Deleted
        row = Document(
            id=new_id,
            knowledge_base_id=self._base.id,
            filename=document.filename,
            content_type=document.content_type,
            size_bytes=document.size_bytes,
            sha256=document.sha256,
            status="processing",
            page_count=document.page_count,
            notice=document.notice,
            parent_id=self._parents.get(document.parent_id or ""),
            tree_wanted=document.has_tree,
            language_told=False,
            uploaded_at=document.uploaded_at,
        )
        unit.session.add(row)
        unit.session.flush()
        if is_deleted(unit.session, self._base.id, document.sha256, None):
            raise _Deleted
        self._platform.blobs.keep(unit, staged, row.holder)
        return True

    async def _put(self, new_id: str, part: _Part, keep: bool) -> None:
        vectors, engine = part.vectors, str(self._bundle.manifest.engine)
        if not keep:
            texts = [one.text for one in part.passages]
            embedded = await embed(self._platform, self._base.embedding_model, texts, "passage")
            vectors, engine = embedded.vectors, embedded.engine
        rows = zip(part.ids, part.passages, vectors, strict=True)
        points = [
            Point(
                id=point_id,
                group=new_id,
                position=number,
                text=passage.text,
                vector=vector,
                payload=place_of(passage),
            )
            for number, (point_id, passage, vector) in enumerate(rows, start=part.start)
        ]
        await self._platform.database.write(self._stage, new_id, points, engine)

    def _stage(self, unit: Unit, new_id: str, points: list[Point], engine: str) -> None:
        self._held(unit, new_id)
        vectors, collection = self._platform.vectors, self._base.collection
        vectors.ensure(unit, collection, len(points[0].vector), engine)
        vectors.stage(unit, collection, points)

    def _publish(self, unit: Unit, document: BundledDocument, new_id: str) -> None:
        self._held(unit, new_id)
        row = unit.session.get(Document, new_id)
        assert row is not None
        row.chunk_count = self._platform.vectors.publish(unit, self._base.collection, new_id)
        row.status, row.completed_at = "completed", utc_now()
        unit.emit(
            DocumentIngested(
                document_id=new_id,
                knowledge_base_id=self._base.id,
                owner_id=self._base.owner_id,
                filename=document.filename,
                chunk_count=row.chunk_count,
            )
        )
        note_outcome(unit, "success")
        if row.tree_wanted:
            queue_one(unit, row, self._base.owner_id)

    def _finish(self, unit: Unit) -> None:
        """Import the plugins' data, then release the file."""
        self._held(unit, to_change=True).importing = False
        unit.session.flush()
        forget_ended(unit, self._platform, self._base.id)
        self._platform.hooks.ask_now(
            hookspecs.import_derived,
            platform=self._platform,
            unit=unit,
            knowledge_base_id=self._base.id,
            parts=self._bundle.manifest.plugins,
            renamed=self._new,
        )
        unit.enqueue(TELL_LANGUAGES, TellPayload())
        _let_go(unit, self._platform, self._payload)

    def _held(self, unit: Unit, document_id: str | None = None, *, to_change: bool = False) -> KnowledgeBase:
        """Lock the knowledge base, and the document if given, against deletion until the unit ends."""
        mine = select(KnowledgeBase).where(KnowledgeBase.id == self._payload.knowledge_base_id)
        base: KnowledgeBase | None = unit.session.scalar(
            mine.with_for_update(read=not to_change, key_share=True)
        )
        if base is None:
            raise _Gone
        if self._revision is not None and base.revision != self._revision:
            raise _Reembedded
        if document_id is not None and unit.session.get(Document, document_id, with_for_update=True) is None:
            raise _Deleted
        return base

    def _id_of(self, document: BundledDocument) -> str:
        return str(uuid.uuid5(_NAMESPACE, f"{self._payload.knowledge_base_id}/{document.id}"))


def _point_id(document_id: str, position: int) -> str:
    return str(uuid.uuid5(_NAMESPACE, f"{document_id}/{position}"))


def _let_go(unit: Unit, platform: Platform, payload: ImportPayload) -> None:
    platform.blobs.release(unit, payload.sha256, payload.holder)


async def abandon(platform: Platform, payload: ImportPayload) -> None:
    """Remove what was imported so far, and the file."""
    await platform.database.write(_abandon, platform, payload)


def _abandon(unit: Unit, platform: Platform, payload: ImportPayload) -> None:
    base: KnowledgeBase | None = unit.session.get(
        KnowledgeBase, payload.knowledge_base_id, with_for_update=True
    )
    if base is not None:
        delete_base(unit, platform, base)
    _let_go(unit, platform, payload)


async def _give_up(platform: Platform, payload: ImportPayload, _reason: str) -> None:
    await abandon(platform, payload)


def _text(error: Exception) -> str:
    if isinstance(error, EngineMismatch):
        return str(engine_changed("its model", error).detail)
    detail = getattr(error, "detail", str(error))
    return str(detail[0]["msg"]) if isinstance(detail, list) else str(detail)


IMPORT = LongJob(
    "rag.import_knowledge_base",
    ImportPayload,
    run,
    title="Import a knowledge base",
    lane="large",
    on_give_up=_give_up,
    on_cancel=abandon,
    visible=visible,
)
