"""Stores of a plugin: chosen by a setting, held to the kernel's own suites, and used by everything above."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import logging
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from builtin_plugins.vectors.api import (
    VECTOR_STORE,
    VECTORS,
    Hit,
    Point,
    Query,
    StoredPoint,
)
from builtin_plugins.vectors.conformance import Stores, VectorStoreConformance
from builtin_plugins.vectors.supervision import supervised
from kernel.db.engine import Database
from kernel.sdk import (
    PLUGIN_STATES,
    HeldBlobs,
    Plugin,
    StartupError,
    StoreNeeds,
    StoreOffer,
    Unavailable,
    Unit,
    hookimpl,
)
from kernel.sdk.storage import BLOB_STORE, CACHE_STORE, BlobStore, Cache, Staged, StoredBlob
from kernel.stores.offers import StoreKind
from kernel.testing import Start
from kernel.testing.conformance import BlobStoreConformance, CacheConformance
from tests.builtin_plugins.rag.rag_support import HANDBOOK, ask, ingest, make_base, make_pipeline, upload
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.shelf_stores.blobs import ShelfBlobs
from tests.fakes.shelf_stores.cache import ShelfCache
from tests.fakes.shelf_stores.models import ShelfPoint
from tests.fakes.shelf_stores.plugin import ShelfPlugin
from tests.fakes.shelf_stores.vectors import ShelfVectors

CHOSEN = {f"PLATFORM_{kind}_STORE": "shelf" for kind in ("VECTOR", "BLOB", "CACHE")}


@pytest.fixture
async def database(start_platform: Start, database_url: str | None) -> Database:
    """A database with the plugin's tables."""
    return (await start_platform(ShelfPlugin, env={"DATABASE_URL": database_url})).platform.database


class TestVectors(VectorStoreConformance):
    @pytest.fixture
    def stores(self, database: Database) -> Stores:
        """Two, as two processes have them."""
        return ShelfVectors(database), ShelfVectors(database)


class TestBlobs(BlobStoreConformance):
    @pytest.fixture
    def blobs(self, database: Database, tmp_path: Path) -> ShelfBlobs:
        """A store of its own folder."""
        return ShelfBlobs(database, tmp_path / "shelf")

    async def held(self, blobs: BlobStore) -> int:
        """What is packed, and what is staged."""
        assert isinstance(blobs, ShelfBlobs)
        return len([*blobs.packed.glob("*.gz"), *blobs.here.glob("*.staged")])

    async def abandon(self, blobs: BlobStore, content: bytes) -> None:
        """A packed file without holders."""
        assert isinstance(blobs, ShelfBlobs)
        name = hashlib.sha256(content).hexdigest()
        (blobs.packed / f"{name}.gz").write_bytes(gzip.compress(content))


class TestCache(CacheConformance):
    @pytest.fixture
    def cache(self) -> Cache:
        """A dictionary."""
        return ShelfCache()


async def test_the_chosen_stores_serve(start_platform: Start, database_url: str | None) -> None:
    """A document goes through them from its upload to its answer and its deletion; requests are counted."""
    env = {**CHOSEN, "DATABASE_URL": database_url, "RATE_LIMIT_ENABLED": "true"}
    running = await start_platform("rag", "extractive_answers", HashEmbeddings(), ShelfPlugin, env=env)
    platform = running.platform
    blobs, cache = platform.blobs, platform.cache
    assert isinstance(blobs, ShelfBlobs) and isinstance(cache, ShelfCache)
    ann = await running.user("ann")
    base = await make_base(ann)
    document = await ingest(running, ann, base, "handbook.md", HANDBOOK)
    assert document["status"] == "completed"
    held = await platform.database.read(lambda session: list(session.scalars(select(ShelfPoint.group_key))))
    assert held == [document["document_id"]] * document["chunk_count"]
    path = f"/v1/rag/knowledge-bases/{base}/documents/{document['document_id']}"
    assert (await ann.get(f"{path}/content")).body == HANDBOOK.encode()
    answer = await ask(ann, await make_pipeline(ann, base), "What is the daily allowance for meals?")
    assert answer["sources"]
    assert list(blobs.packed.glob("*.gz"))
    assert (await ann.delete(path)).status == 200
    assert await platform.resource(VECTORS).count(f"rag:{base}") == 0
    assert not list(blobs.packed.glob("*.gz"))
    assert sum(cache.counts.values()) > 3


class FaultyVectors(ShelfVectors):
    """Searches as `fault` says."""

    def __init__(self, database: Database, fault: Any) -> None:
        super().__init__(database)
        self._fault = fault

    async def search(self, collection: str, query: Query) -> list[Hit]:
        if isinstance(self._fault, Exception):
            raise self._fault
        if isinstance(self._fault, asyncio.Event):
            await self._fault.wait()
        found: list[Hit] = self._fault
        return found


FAULTS: list[Any] = [
    RuntimeError("secret"),
    ConnectionRefusedError("secret"),
    None,
    [("secret", 1.0)],
    [Hit(StoredPoint("a", "b", 0, "secret", {}), float("nan"), 0.0)],
]


@pytest.mark.parametrize("fault", FAULTS, ids=["raises", "is away", "nothing", "no hits", "no numbers"])
async def test_a_search_that_fails(
    start_platform: Start, caplog: pytest.LogCaptureFixture, fault: Any
) -> None:
    """A question is answered 503 with the plugin's name, whatever its store does; the log has the rest."""

    class Faulty(ShelfPlugin):
        @asynccontextmanager
        async def _vectors(self, needs: StoreNeeds) -> AsyncIterator[ShelfVectors]:
            yield FaultyVectors(needs.database, fault)

    env = {"PLATFORM_VECTOR_STORE": "shelf"}
    running = await start_platform("rag", "extractive_answers", Faulty, HashEmbeddings(), env=env)
    ann = await running.user()
    base = await make_base(ann)
    await ingest(running, ann, base, "handbook.md", HANDBOOK)
    answer = await ann.post(f"/v1/rag/knowledge-bases/{base}/search", json={"question": "Hotels?"})
    assert (answer.status, answer.json()["code"]) == (503, "vector_store_failed")
    assert "'shelf'" in answer.detail and "secret" not in answer.detail
    assert "the plugin 'shelf' failed in a search" in caplog.text


async def test_a_search_that_never_ends(database: Database) -> None:
    """It is given up after the time limit."""
    never = FaultyVectors(database, asyncio.Event())
    with pytest.raises(Unavailable, match="'shelf'"):
        await supervised(never, "shelf", seconds=0.01).search("all", Query(np.zeros(2, np.float32), 1))


class BrokenVectors(ShelfVectors):
    """Counts forever, and can't write."""

    async def count(self, collection: str) -> int:
        await asyncio.Event().wait()
        return 0

    def stage(self, unit: Unit, collection: str, points: Sequence[Point]) -> None:
        raise RuntimeError("secret")


async def test_what_else_fails_or_never_ends(start_platform: Start, caplog: pytest.LogCaptureFixture) -> None:
    """A count is given up after the time limit, a write that fails names the plugin, also to the uploader."""

    class Broken(ShelfPlugin):
        @asynccontextmanager
        async def _vectors(self, needs: StoreNeeds) -> AsyncIterator[ShelfVectors]:
            yield BrokenVectors(needs.database)

    env = {"PLATFORM_VECTOR_STORE": "shelf"}
    running = await start_platform("rag", "extractive_answers", Broken, HashEmbeddings(), env=env)
    ann = await running.user()
    base = await make_base(ann)
    document = await ingest(running, ann, base, "handbook.md", HANDBOOK)
    assert document["status"] == "failed"
    assert "'shelf'" in str(document) and "secret" not in str(document)
    assert "the plugin 'shelf' failed in stage" in caplog.text
    with pytest.raises(Unavailable, match="'shelf'"):
        await supervised(BrokenVectors(running.platform.database), "shelf", seconds=0.01).count("all")


async def test_a_write_that_takes_long(database: Database) -> None:
    """Nothing can end it, so the log names the plugin while others still wait for its transaction."""
    told, said = threading.Event(), list[str]()

    class Slow(ShelfVectors):
        def drop(self, unit: Unit, collection: str) -> None:
            told.wait(20)

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())
            told.set()

    log = logging.getLogger("platform.stores")
    log.addHandler(handler := Listening())
    try:
        await database.write(supervised(Slow(database), "shelf", seconds=0.01).drop, "all")
    finally:
        log.removeHandler(handler)
    assert len(said) == 1 and "'shelf'" in said[0] and " drop" in said[0]


@pytest.mark.parametrize("fault", ["secure", "place", "local"])
async def test_a_blob_store_that_fails(
    start_platform: Start, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    """The answer to an upload or a read names the plugin, and does not blame the request."""

    class Broken(HeldBlobs):
        async def secure(self, staged: Staged) -> None:
            if fault == "secure":
                raise RuntimeError("secret")

        def place(self, staged: Staged) -> None:
            if fault == "place":
                raise RuntimeError("secret")

        def take_away(self, sha256: str) -> None:
            pass

        def find_stored(self) -> dict[str, StoredBlob]:
            return {}

        async def local(self, sha256: str) -> Path:
            raise ValueError("secret")

    class BrokenShelf(ShelfPlugin):
        @asynccontextmanager
        async def _blobs(self, needs: StoreNeeds) -> AsyncIterator[Any]:
            yield Broken(needs.database, needs.disk, needs.settings.home / "staged")

    env = {"PLATFORM_BLOB_STORE": "shelf"}
    running = await start_platform("rag", "extractive_answers", BrokenShelf, HashEmbeddings(), env=env)
    assert isinstance(running.platform.blobs, Broken)
    ann = await running.user()
    path = f"/v1/rag/knowledge-bases/{await make_base(ann)}"
    answer = await upload(ann, path.rpartition("/")[2], "handbook.md", HANDBOOK)
    if fault == "local":
        assert answer.status == 202
        answer = await ann.get(f"{path}/documents/{answer.json()['document_id']}/content")
    assert (answer.status, answer.json()["code"]) == (503, "blob_store_failed")
    assert "'shelf'" in answer.detail and "secret" not in answer.detail
    assert "'shelf'" in caplog.text and "secret" in caplog.text


class SlottedBlobs:
    """A store that loses what it stores, and has slots only."""

    __slots__ = ("shelf",)
    shelf: ShelfBlobs

    def __init__(self, shelf: ShelfBlobs) -> None:
        object.__setattr__(self, "shelf", shelf)

    async def stage(self, chunks: AsyncIterator[bytes], limit: int) -> Staged:
        return await self.shelf.stage(chunks, limit)

    def keep(self, unit: Unit, staged: Staged, holder: str) -> None:
        self.shelf.keep(unit, staged, holder)

    def release(self, unit: Unit, sha256: str, holder: str) -> None:
        self.shelf.release(unit, sha256, holder)

    async def local(self, sha256: str) -> Path:
        raise ValueError("secret")

    async def sweep(self) -> int:
        return await self.shelf.sweep()


class FrozenBlobs(SlottedBlobs):
    """One whose attributes can't be set, as those of a frozen dataclass."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(name)


@pytest.mark.parametrize("kind", [SlottedBlobs, FrozenBlobs])
async def test_a_blob_store_that_cannot_be_changed(start_platform: Start, kind: type[SlottedBlobs]) -> None:
    """The platform starts all the same, and a failure names its plugin."""

    class Frozen(ShelfPlugin):
        @asynccontextmanager
        async def _blobs(self, needs: StoreNeeds) -> AsyncIterator[Any]:
            yield kind(ShelfBlobs(needs.database, needs.settings.home / "shelf"))

    running = await start_platform(
        "rag", "extractive_answers", Frozen, HashEmbeddings(), env={"PLATFORM_BLOB_STORE": "shelf"}
    )
    ann = await running.user()
    base = await make_base(ann)
    document = (await upload(ann, base, "handbook.md", HANDBOOK)).json()["document_id"]
    answer = await ann.get(f"/v1/rag/knowledge-bases/{base}/documents/{document}/content")
    assert (answer.status, answer.json()["code"]) == (503, "blob_store_failed")


async def test_a_chosen_cache_that_is_away(start_platform: Start) -> None:
    """It is named in `/health`, and requests are answered."""
    running = await start_platform(ShelfPlugin, env={"PLATFORM_CACHE_STORE": "shelf"})
    cache = running.platform.cache
    assert isinstance(cache, ShelfCache)
    cache.away = True
    health = (await running.anonymous.get("/health")).json()
    assert "ShelfCache" in health["checks"]["cache"]


class TestChoosing:
    async def test_nothing_is_opened_unasked(self, start_platform: Start) -> None:
        """A plugin that offers stores changes nothing by itself."""
        running = await start_platform(ShelfPlugin)
        assert not isinstance(running.platform.resource(VECTORS), ShelfVectors)
        assert not (running.platform.settings.home / "shelf").exists()

    @pytest.mark.parametrize("kind", ["VECTOR", "BLOB", "CACHE"])
    async def test_a_store_that_nobody_offers(self, start_platform: Start, kind: str) -> None:
        """Stops the start, naming the setting, what there is, and where to look."""
        name = f"PLATFORM_{kind}_STORE"
        with pytest.raises(StartupError, match=rf"{name} .*'cellar'.*shelf.*plugins list"):
            await start_platform(ShelfPlugin, env={name: "cellar"})

    @pytest.mark.parametrize("fault", ["raises", "hangs"])
    async def test_a_store_that_can_not_be_opened(self, start_platform: Start, fault: str) -> None:
        """It stops the start, as the data stored there is needed."""
        named = {"raises": "OSError: no route", "hangs": r"0\.3 s"}[fault]
        with pytest.raises(StartupError, match=rf"'far' .*{named}"):
            env = {"PLATFORM_VECTOR_STORE": "far", "PLATFORM_PLUGIN_START_TIMEOUT": "0.3"}
            await start_platform(Far(fault), env=env)

    @pytest.mark.parametrize(
        ("kind", "name", "holder"),
        [(VECTOR_STORE, "faiss", "vectors"), (BLOB_STORE, "shelf", "shelf"), (CACHE_STORE, "auto", "")],
    )
    async def test_a_name_that_is_taken(
        self, start_platform: Start, kind: StoreKind[Any], name: str, holder: str
    ) -> None:
        running = await start_platform(ShelfPlugin, Thief(StoreOffer(kind, name, _nothing)))
        reason = running.platform.resource(PLUGIN_STATES).records["thief"].reason or ""
        assert f"{kind.name} '{name}'" in reason and holder in reason


class Thief(Plugin):
    """Offers a store under a name that somebody has."""

    name = "thief"
    after = ("shelf",)

    def __init__(self, offer: StoreOffer[Any]) -> None:
        self.offer = offer

    @hookimpl
    def register_stores(self) -> Sequence[StoreOffer[Any]]:
        return [self.offer]


class Far(Plugin):
    """Offers a store that can't be reached."""

    name = "far"
    requires = ("vectors",)

    def __init__(self, fault: str) -> None:
        self.fault = fault

    @hookimpl
    def register_stores(self) -> Sequence[StoreOffer[Any]]:
        return [StoreOffer(VECTOR_STORE, "far", self._open)]

    @asynccontextmanager
    async def _open(self, needs: StoreNeeds) -> AsyncIterator[ShelfVectors]:
        if self.fault == "raises":
            raise OSError("no route")
        await asyncio.Event().wait()
        yield ShelfVectors(needs.database)


@asynccontextmanager
async def _nothing(needs: StoreNeeds) -> AsyncIterator[None]:
    yield None
