"""Writing a knowledge base into a file, piece by piece, while it is sent."""

from __future__ import annotations

import asyncio
import json
import zipfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sqlalchemy.orm import Session

from builtin_plugins.inference.api import Embedded
from builtin_plugins.rag import api as rag
from builtin_plugins.rag_exchange import api
from builtin_plugins.rag_exchange.bundle import (
    MANIFEST,
    Base,
    BundledDocument,
    BundleManifest,
    ZipBuffer,
    original_of,
    passages_of,
    vectors_of,
)
from builtin_plugins.vectors.api import VECTORS, EngineMismatch, StoredPoint, searched_text
from kernel.sdk import (
    Caller,
    HeldBlobs,
    Platform,
    Scope,
    Unit,
    audit,
    scope_of,
    utc_now,
)

if TYPE_CHECKING:
    import numpy as np

_BATCH = 500
_PIECE = 1 << 20
_EMBEDDED_AT_ONCE = 96


async def find(caller: Caller, kb_id: str) -> rag.WholeBase:
    """The knowledge base to export, noted in the audit log.

    Raises KnowledgeBaseNotFound, NotOwner, UnreadableDocuments.
    """
    scope = await scope_of(caller.platform, caller.principal)
    contents = caller.platform.resource(rag.CONTENTS)

    def note(unit: Unit) -> rag.WholeBase:
        base = contents.find_own(unit, scope, kb_id)
        contents.require_readable(unit.session, scope, kb_id)
        audit(unit, "rag.knowledge_base.exported", "knowledge_base", kb_id, origin=caller.origin)
        return base

    return await caller.platform.database.write(note)


async def pieces(caller: Caller, base: rag.WholeBase, made_by: str) -> AsyncGenerator[bytes, None]:
    """The file's bytes. Documents that change, go, or may no longer be read meanwhile are left out."""
    platform, scope = caller.platform, await scope_of(caller.platform, caller.principal)
    export = _Export(platform, scope, base)
    async with aclosing(export.documents()) as written:
        async for piece in written:
            yield piece
    declared = await platform.database.read(platform.resource(rag.CONTENTS).declared, base.id)
    plugins = await platform.database.read(export.of_plugins)
    yield await asyncio.to_thread(export.end, made_by, declared, plugins)


class _Export:
    """One export in progress."""

    def __init__(self, platform: Platform, scope: Scope, base: rag.WholeBase) -> None:
        self._platform = platform
        self._scope = scope
        self._base = base
        self._pipe = ZipBuffer()
        self._zip = zipfile.ZipFile(self._pipe, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        self._done: list[BundledDocument] = []
        self._engine: str | None = None
        self._dimension = 0

    async def documents(self) -> AsyncGenerator[bytes, None]:
        """The rows of each completed document."""
        contents = self._platform.resource(rag.CONTENTS)
        read, scope = self._platform.database.read, self._scope
        for document in await read(contents.completed, scope, self._base.id):
            if not await read(contents.may_read, scope, document.id):
                continue
            content = await self._passages(document.id)
            if content is None:
                continue
            points, vectors = content
            entry = _entry(document, len(points))
            try:
                async with aclosing(self._original(document.sha256, original_of(entry))) as written:
                    async for piece in written:
                        yield piece
            except FileNotFoundError:
                continue  # deleted in the meantime
            await asyncio.to_thread(self._write, entry, points, vectors)
            self._done.append(entry)
            yield self._pipe.take()

    async def _original(self, sha256: str, name: str) -> AsyncGenerator[bytes, None]:
        """The original. It may have to be fetched first and isn't kept: together they may exceed the disk."""
        if name in self._zip.NameToInfo:  # of a document with the same bytes at another path
            return
        async with HeldBlobs.borrowed_from(self._platform.blobs, sha256) as path:
            with (
                await asyncio.to_thread(path.open, "rb") as file,
                self._zip.open(name, "w", force_zip64=True) as target,
            ):
                while piece := await asyncio.to_thread(file.read, _PIECE):
                    await asyncio.to_thread(target.write, piece)
                    yield self._pipe.take()

    async def _passages(self, document_id: str) -> tuple[list[StoredPoint], list[np.ndarray]] | None:
        """All passages of a document, or None if it has changed since the export began."""
        store = self._platform.resource(VECTORS)
        points: list[StoredPoint] = []
        vectors: list[np.ndarray] = []
        total = 1
        while len(points) < total:
            window = (self._base.collection, document_id, _BATCH, len(points))
            page, total = await store.points(*window)
            embedded = await store.vectors(*window)
            if not page or embedded is None or len(embedded.vectors) != len(page):
                return None
            points += page
            vectors += [embedded.vectors] if self._fits(embedded) else await self._embed_again(page)
        return points, vectors

    async def _embed_again(self, points: Sequence[StoredPoint]) -> list[np.ndarray]:
        """Vectors of the model that the file names, if the knowledge base has switched models meanwhile.

        Raises ModelUnavailable, EngineChanged: the file then ends early, and no import accepts it.
        """
        vectors = []
        for start in range(0, len(points), _EMBEDDED_AT_ONCE):
            part = points[start : start + _EMBEDDED_AT_ONCE]
            texts = [searched_text(point.text, point.payload) for point in part]
            embedded = await rag.embed(self._platform, self._base.embedding_model, texts, "passage")
            if not self._fits(embedded):
                model = self._base.embedding_model
                raise rag.engine_changed(model, EngineMismatch(str(self._engine), embedded.engine))
            vectors.append(embedded.vectors)
        return vectors

    def _fits(self, embedded: Embedded) -> bool:
        if self._engine is None:
            self._engine, self._dimension = embedded.engine, embedded.vectors.shape[1]
        return (self._engine, self._dimension) == (embedded.engine, embedded.vectors.shape[1])

    def _write(
        self, entry: BundledDocument, points: Sequence[StoredPoint], vectors: Sequence[np.ndarray]
    ) -> None:
        with self._zip.open(passages_of(entry), "w", force_zip64=True) as target:
            for point in points:
                row = {"id": point.id, "text": point.text, **rag.place_in(point.payload)}
                target.write(json.dumps(row).encode() + b"\n")
        with self._zip.open(vectors_of(entry), "w", force_zip64=True) as target:
            for block in vectors:
                target.write(block.astype("<f4").tobytes())

    def of_plugins(self, session: Session) -> Mapping[str, Any]:
        """Plugins' data about the knowledge base, by plugin name."""
        parts: dict[str, Any] = {}
        for part in self._platform.hooks.ask_now(
            api.export_derived,
            platform=self._platform,
            session=session,
            knowledge_base_id=self._base.id,
        ):
            parts.update(part)
        return parts

    def end(self, made_by: str, declared: rag.DeclaredMetadata, plugins: Mapping[str, Any]) -> bytes:
        """The manifest and the end of the file."""
        manifest = BundleManifest(
            exported_at=utc_now(),
            made_by=made_by,
            knowledge_base=Base(**{name: getattr(self._base, name) for name in Base.model_fields}),
            engine=self._engine,
            dimension=self._dimension,
            documents=self._done,
            fields=dict(declared.fields),
            rules=list(declared.rules),
            plugins=dict(plugins),
        )
        self._zip.writestr(MANIFEST, manifest.model_dump_json())
        self._zip.close()
        return self._pipe.take()


def _entry(document: rag.WholeDocument, passages: int) -> BundledDocument:
    return BundledDocument(chunk_count=passages, **asdict(document))
