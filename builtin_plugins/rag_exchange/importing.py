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
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from builtin_plugins.rag import api as rag
from builtin_plugins.rag_exchange import api
from builtin_plugins.rag_exchange.bundle import BundledDocument, BundledPassage, BundleReader, broken
from builtin_plugins.rag_exchange.opening import settings_in
from builtin_plugins.rag_exchange.settings import RagExchangeSettings
from builtin_plugins.vectors.api import VECTORS, EngineMismatch, Point, searched_text
from kernel.sdk import (
    Caller,
    Forbidden,
    JobFailed,
    LongJob,
    Platform,
    Progress,
    Unit,
    Unprocessable,
    audit,
)
from kernel.sdk.storage import Staged, held_blobs_of

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
        return rag.import_holder(self.knowledge_base_id)


class ImportStarted(BaseModel):
    """The import that was started."""

    message: str
    knowledge_base_id: str
    job_id: str


class _Reembedded(Exception):
    """The embedding model was changed during the import."""


async def start(caller: Caller, staged: Staged) -> ImportStarted:
    """Make the knowledge base, keep the file and queue the job, in one transaction.

    Raises Forbidden for a service, BundleBroken, Unavailable.
    """
    platform, owner_id = caller.platform, caller.id
    if owner_id is None:
        raise Forbidden("Only an account can import, because it becomes the owner of what is created")
    base = await settings_in(platform, staged.path, _most_bytes(platform))
    model = await rag.check_embedding_model(platform, base.embedding_model)
    settings = base.model_copy(update={"embedding_model": model})
    base_id, contents = str(uuid.uuid4()), platform.resource(rag.CONTENTS)
    payload = ImportPayload(knowledge_base_id=base_id, sha256=staged.sha256)

    def write(unit: Unit) -> str:
        contents.create(unit, base_id, settings, owner_id, graph=base.graph)
        platform.blobs.keep(unit, staged, payload.holder)
        audit(unit, "rag.knowledge_base.imported", "knowledge_base", base_id, origin=caller.origin)
        return unit.enqueue(IMPORT, payload, owner_id=owner_id, subject=base_id)

    job_id = await platform.database.write(write)
    return ImportStarted(message="Started; follow it at /v1/jobs", knowledge_base_id=base_id, job_id=job_id)


def _most_bytes(platform: Platform) -> int:
    return platform.settings_of(RagExchangeSettings).max_import_size_mb * _MEGABYTE * _UNPACKED


async def run(platform: Platform, payload: ImportPayload, progress: Progress) -> str | None:
    """Import document after document; returns the knowledge base's path."""
    try:
        if await platform.database.write(_begin, platform, payload):
            await _read(platform, payload, progress)
    except rag.KnowledgeBaseNotFound:
        await platform.database.write(_let_go, platform, payload)
        return None
    except (Unprocessable, rag.StorageLimit, EngineMismatch, rag.EngineChanged) as error:
        await abandon(platform, payload)
        raise JobFailed(_text(error)) from None
    return f"/v1/rag/knowledge-bases/{payload.knowledge_base_id}"


def _begin(unit: Unit, platform: Platform, payload: ImportPayload) -> bool:
    """Whether there is anything to import: if the file was released, an earlier run completed the import."""
    contents = platform.resource(rag.CONTENTS)
    contents.hold(unit, payload.knowledge_base_id, to_change=True)
    if not held_blobs_of(unit.session, payload.holder):
        return False
    contents.begin(unit, payload.knowledge_base_id)
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
        self._contents = platform.resource(rag.CONTENTS)
        self._payload = payload
        self._bundle = bundle
        self._progress = progress
        self._revision: int | None = None
        self._new: dict[str, str] = {}
        self._parents = {one.id: self._id_of(one) for one in bundle.manifest.documents}

    async def run(self) -> bool:
        """Import whatever is missing; False if it has to begin again. Raises BundleBroken,
        KnowledgeBaseNotFound.
        """
        documents = self._bundle.manifest.documents
        self._base = await self._platform.database.write(self._lock_base)
        self._revision = self._base.revision
        await self._platform.database.write(self._declare)
        keep = bool(documents) and await self._is_same_engine()
        self._progress.report(0, total=len(documents), unit="documents", message="Importing documents")
        try:
            for document in documents:
                with suppress(rag.DocumentNotFound):  # it was deleted meanwhile
                    await self._take(document, keep)
                self._progress.advance()
            await self._platform.database.write(self._finish)
        except _Reembedded:
            return False
        return True

    def _declare(self, unit: Unit) -> None:
        manifest = self._bundle.manifest
        declared = rag.DeclaredMetadata(manifest.fields, manifest.rules)
        self._contents.declare(unit, self._base.id, declared)

    async def _is_same_engine(self) -> bool:
        """Whether vectors made here can be compared with those in the file."""
        probe = await rag.embed(self._platform, self._base.embedding_model, ["probe"], "passage")
        manifest = self._bundle.manifest
        return (probe.engine, probe.vectors.shape[1]) == (manifest.engine, manifest.dimension)

    async def _take(self, document: BundledDocument, keep: bool) -> None:
        new_id = self._new[document.id] = self._id_of(document)
        arrived = await self._begin(document, new_id)
        self._new[document.id] = arrived.id
        if arrived.id != new_id:
            return  # somebody has uploaded the same bytes
        wants_passages = arrived.wants_passages
        written = sys.maxsize
        if wants_passages:
            written = await self._platform.resource(VECTORS).staged(self._base.collection, new_id)
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
        if wants_passages:
            await self._platform.database.write(self._publish, new_id)

    async def _begin(self, document: BundledDocument, new_id: str) -> rag.ArrivedDocument:
        """Write the document's row and keep its original; an earlier run may have completed it."""
        staged = await self._platform.blobs.stage(self._original(document), document.size_bytes)
        try:
            if (staged.sha256, staged.size) != (document.sha256, document.size_bytes):
                raise broken(f"the original of {document.filename} is not the one that was exported")
            return await rag.write_kept(self._platform, self._add, document, new_id, staged)
        finally:
            staged.discard()

    async def _original(self, document: BundledDocument) -> AsyncIterator[bytes]:
        pieces = self._bundle.original(document)
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            yield piece

    def _add(self, unit: Unit, document: BundledDocument, new_id: str, staged: Staged) -> rag.ArrivedDocument:
        self._lock_base(unit)
        parent = self._parents.get(document.parent_id or "")
        values = document.model_dump(exclude={"id", "parent_id", "chunk_count"})
        whole = rag.WholeDocument(id=new_id, parent_id=parent, **values)
        return self._contents.add(unit, self._base.id, whole, staged)

    async def _put(self, new_id: str, part: _Part, keep: bool) -> None:
        vectors, engine = part.vectors, str(self._bundle.manifest.engine)
        if not keep:
            texts = [searched_text(one.text, _payload_of(one)) for one in part.passages]
            embedded = await rag.embed(self._platform, self._base.embedding_model, texts, "passage")
            vectors, engine = embedded.vectors, embedded.engine
        rows = zip(part.ids, part.passages, vectors, strict=True)
        points = [
            Point(
                id=point_id,
                group=new_id,
                position=number,
                text=passage.text,
                vector=vector,
                payload=_payload_of(passage),
            )
            for number, (point_id, passage, vector) in enumerate(rows, start=part.start)
        ]
        await self._platform.database.write(self._stage, new_id, points, engine)

    def _stage(self, unit: Unit, new_id: str, points: list[Point], engine: str) -> None:
        self._lock_base(unit, new_id)
        vectors, collection = self._platform.resource(VECTORS), self._base.collection
        vectors.ensure(unit, collection, len(points[0].vector), engine)
        vectors.stage(unit, collection, points)

    def _publish(self, unit: Unit, new_id: str) -> None:
        self._lock_base(unit, new_id)
        self._contents.publish(unit, self._base.id, new_id)

    def _finish(self, unit: Unit) -> None:
        """Import the plugins' data, then release the file."""
        self._lock_base(unit, to_change=True)
        self._contents.end(unit, self._base.id)
        self._platform.hooks.ask_now(
            api.import_derived,
            platform=self._platform,
            unit=unit,
            knowledge_base_id=self._base.id,
            parts=self._bundle.manifest.plugins,
            renamed=self._new,
        )
        _let_go(unit, self._platform, self._payload)

    def _lock_base(
        self, unit: Unit, document_id: str | None = None, *, to_change: bool = False
    ) -> rag.WholeBase:
        """Lock the knowledge base, and the document if given, against deletion until the unit ends."""
        base = self._contents.hold(unit, self._payload.knowledge_base_id, document_id, to_change=to_change)
        if self._revision is not None and base.revision != self._revision:
            raise _Reembedded
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
    platform.resource(rag.CONTENTS).remove(unit, payload.knowledge_base_id)
    _let_go(unit, platform, payload)


async def _give_up(platform: Platform, payload: ImportPayload, _reason: str) -> None:
    await abandon(platform, payload)


def _text(error: Exception) -> str:
    if isinstance(error, EngineMismatch):
        return str(rag.engine_changed("its model", error).detail)
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
    visible=rag.seen_bases,
)


def _payload_of(passage: BundledPassage) -> dict[str, Any]:
    return rag.payload_of(passage, None, passage.context)
