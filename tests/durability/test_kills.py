"""What was acknowledged survives: processes are killed at random moments, again and again."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import aiohttp
import psutil
import pytest

from kernel.testing import environment, eventually, migrated_home
from tests.builtin_plugins.documents.sample_documents import scan
from tests.fakes.paced_embeddings import paced
from tests.fakes.processes import Child, free_port, process_environment, start_python, without_plugins

pytestmark = pytest.mark.durability

_PASSWORD = "correct horse battery"
_VICTIMS = ("worker", "api", "both")
PLUGINS = ("embeddings", "models", "rag")


class Server:
    """`platformctl serve` as a process with these plugins, on one port and home."""

    def __init__(
        self, home: Path, database_url: str | None, *, plugins: Sequence[str] = PLUGINS, **settings: str
    ) -> None:
        self.home = home
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        values = {"DATABASE_URL": database_url, **without_plugins(*plugins), **settings}
        self._environment = process_environment(environment(home, values))
        self.process: Child | None = None

    async def start(self) -> None:
        migrated_home(self.home, self._environment)
        command = ("-m", "cli", "serve", "--port", str(self.port))
        with (self.home.parent / "serve.log").open("ab") as log:
            self.process = await start_python(*command, env=self._environment, output=log)
        async with aiohttp.ClientSession() as session, asyncio.timeout(60):
            while not await self._answers(session):
                assert self.process.returncode is None, "the server did not start; see serve.log"

    async def _answers(self, session: aiohttp.ClientSession) -> bool:
        try:
            async with session.get(f"{self.url}/livez") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            await asyncio.sleep(0.05)
            return False

    def ready_workers(self) -> int:
        """How many workers have been ready for jobs so far."""
        log = (self.home.parent / "serve.log").read_text(encoding="utf-8", errors="replace")
        return log.count("is ready for jobs")

    def worker(self) -> psutil.Process | None:
        assert self.process is not None
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self.process.pid).children():
                with suppress(psutil.Error):
                    if "worker" in child.cmdline():
                        return child
        return None

    def kill_worker(self) -> None:
        worker = self.worker()
        if worker is not None:
            with suppress(psutil.NoSuchProcess):
                worker.send_signal(signal.SIGKILL)

    async def kill_api(self) -> None:
        assert self.process is not None
        with suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()

    async def stop(self) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
            await self.process.wait()


class Client:
    """Uploads documents of so many lines and remembers what was acknowledged."""

    def __init__(
        self, server: Server, session: aiohttp.ClientSession, *, lines: int = 250, chunk_size: int = 300
    ) -> None:
        self._server = server
        self._session = session
        self.lines = lines
        self._chunk_size = chunk_size
        self._headers: dict[str, str] = {}
        self.base = ""
        self.acknowledged: dict[str, str] = {}

    async def sign_up(self) -> None:
        account = {"username": "ann", "email": "ann@example.org", "password": _PASSWORD}
        await self._call("POST", "/v1/auth/register", json=account)
        await self.sign_in()
        answer = await self._call(
            "POST", "/v1/rag/knowledge-bases", json={"name": "Kills", "chunk_size": self._chunk_size}
        )
        self.base = answer["id"]

    async def sign_in(self) -> None:
        login = {"username": "ann", "password": _PASSWORD}
        answer = await self._call("POST", "/v1/auth/login", json=login)
        self._headers = {"Authorization": f"Bearer {answer['access_token']}"}

    async def upload(self, number: int) -> None:
        """Send one document; it counts only if the answer arrives."""
        await self.upload_file(f"{number}.txt", document(number, self.lines).encode())

    async def upload_file(self, name: str, content: bytes) -> None:
        """The same with a file."""
        form = aiohttp.FormData()
        form.add_field("file", content, filename=name)
        with suppress(aiohttp.ClientError, TimeoutError, ConnectionError):
            answer = await self._call("POST", f"/v1/rag/knowledge-bases/{self.base}/upload", data=form)
            self.acknowledged[answer["document_id"]] = name

    async def documents(self) -> list[dict[str, object]]:
        answer = await self._call("GET", f"/v1/rag/knowledge-bases/{self.base}/documents")
        return list(answer["items"])

    async def chunks(self, document_id: str) -> list[dict[str, object]]:
        path = f"/v1/rag/knowledge-bases/{self.base}/documents/{document_id}/chunks?limit=500"
        return list((await self._call("GET", path))["items"])

    async def _call(self, method: str, path: str, **options: object) -> dict[str, object]:
        timeout = aiohttp.ClientTimeout(total=30)
        request = self._session.request(
            method, self._server.url + path, headers=self._headers, timeout=timeout, **options
        )
        async with request as answer:
            assert answer.status < 300, (answer.status, await answer.text())
            return await answer.json()


def document(number: int, lines: int) -> str:
    """A text of its own, long enough that its ingestion takes a while."""
    line = "Item {n} of list {number}: the part {n}-{number} weighs {w} grams and is kept in hall {h}."
    return "\n".join(line.format(n=n, number=number, w=n * 7 % 91, h=n % 9) for n in range(lines))


@pytest.mark.long
@pytest.mark.either_database
async def test_kills_at_random_moments_lose_and_double_nothing(
    platform_home: Path, database_url: str | None, request: pytest.FixtureRequest
) -> None:
    """Worker, API process and both die while documents come in: each acknowledged one ends complete."""
    chance = random.Random(20)
    server = Server(platform_home, database_url)
    await server.start()
    try:
        async with aiohttp.ClientSession() as session:
            client = Client(server, session)
            await client.sign_up()
            kills = request.config.getoption("--kills")
            await _kill_while_uploading(server, client, chance, kills)
            await _wait_until_done(client)
            await _check(client, platform_home)
    finally:
        await server.stop()
    if database_url is None:
        _check_rows(platform_home)


@pytest.mark.long
async def test_a_worker_killed_between_two_batches_loses_and_doubles_nothing(
    platform_home: Path, tmp_path: Path
) -> None:
    server = Server(platform_home, None, plugins=("models", "rag"), **paced(tmp_path / "packages"))
    await server.start()
    try:
        async with aiohttp.ClientSession() as session:
            client = Client(server, session, lines=250, chunk_size=100)  # a line is a passage: three batches
            await client.sign_up()
            await client.upload(0)
            await _until_partly_written(client)
            server.kill_worker()
            await _wait_until_done(client)
            await _check(client, platform_home)
    finally:
        await server.stop()
    _check_rows(platform_home)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed")
async def test_a_worker_killed_while_a_scan_is_recognized_loses_and_doubles_nothing(
    platform_home: Path, tmp_path: Path
) -> None:
    """Its first pages are found by then; none of them stays behind where unread ones are."""
    pages = [[f"The walrus of page {number} has", "eaten many mussels in Tromso."] for number in range(20)]
    server = Server(platform_home, None, plugins=("models", "rag"), **paced(tmp_path / "packages"))
    await server.start()
    try:
        async with aiohttp.ClientSession() as session:
            client = Client(server, session, chunk_size=100)
            await client.sign_up()
            await client.upload_file("scan.pdf", scan(tmp_path / "scan.pdf", pages).read_bytes())
            record: dict[str, object] = {}
            async with asyncio.timeout(120):
                while not record.get("searchable_count"):
                    (record,) = await client.documents()
                    await asyncio.sleep(0.02)  # polling is what clients do
            assert (record["status"], record["chunk_count"]) == ("processing", 0)
            server.kill_worker()
            await _wait_until_done(client)
            (record,) = await client.documents()
            assert record["status"] == "completed"
            chunks = await client.chunks(str(record["document_id"]))
            assert [chunk["page"] for chunk in chunks] == list(range(1, len(pages) + 1))
    finally:
        await server.stop()
    _check_rows(platform_home)


async def _until_partly_written(client: Client) -> None:
    """Until the first batch of the only document is written, and not the last."""
    async with asyncio.timeout(60):
        while True:
            (record,) = await client.documents()
            assert record["status"] == "processing", "it was done before a worker could be killed"
            if record["chunk_count"]:
                return
            await asyncio.sleep(0.02)  # polling is what clients do


async def _kill_while_uploading(server: Server, client: Client, chance: random.Random, kills: int) -> None:
    victims = [victim for _ in range(0, kills, len(_VICTIMS)) for victim in chance.sample(_VICTIMS, 3)]
    ready = 0
    for number, victim in enumerate(victims[:kills]):
        before = ready  # a worker that still starts has nothing to lose
        await eventually(lambda before=before: server.ready_workers() > before)  # type: ignore[misc]
        uploads = asyncio.create_task(_upload_some(client, number))
        await asyncio.sleep(chance.uniform(0.05, 1.2))  # the random moment itself
        ready = server.ready_workers()
        if victim in ("worker", "both"):
            server.kill_worker()
        if victim in ("api", "both"):
            await server.kill_api()
        await uploads
        if victim in ("api", "both"):
            await server.start()


async def _upload_some(client: Client, number: int) -> None:
    await client.upload(number * 2)
    await client.upload(number * 2 + 1)


async def _wait_until_done(client: Client) -> None:
    async with asyncio.timeout(int(os.environ.get("PLATFORM_TEST_PATIENCE", "300"))):
        while any(item["status"] == "processing" for item in await client.documents()):  # noqa: ASYNC110
            await asyncio.sleep(0.25)  # polling is what clients do


async def _check(client: Client, home: Path) -> None:
    records = {str(item["document_id"]): item for item in await client.documents()}
    assert client.acknowledged, "no upload was acknowledged: the test tested nothing"
    assert set(client.acknowledged) <= set(records)
    for document_id, record in records.items():
        assert record["status"] == "completed", record
        chunks = await client.chunks(document_id)
        assert [chunk["chunk_index"] for chunk in chunks] == list(range(len(chunks)))
        assert len(chunks) == record["chunk_count"]
        text = document(int(str(record["filename"]).partition(".")[0]), client.lines)
        covered = sorted((int(str(c["char_start"])), int(str(c["char_end"]))) for c in chunks)
        assert covered[0][0] == 0 and covered[-1][1] == len(text)
        assert all(start <= end for (_, end), (start, _) in zip(covered[1:], covered, strict=False))
        assert all(text[start:end].strip() for start, end in covered)
    files = {path.parent.name + path.name for path in (home / "blobs").glob("??/*")}
    assert files == {str(record["sha256"]) for record in records.values()}
    assert not list((home / "blobs" / "staging").glob("*"))


def _check_rows(home: Path) -> None:
    """Nothing in the database belongs to no document, and no job is left."""
    with sqlite3.connect(home / "platform.db") as connection:
        orphans = "SELECT count(*) FROM vectors_point WHERE group_key NOT IN (SELECT id FROM rag_document)"
        assert connection.execute(orphans).fetchone() == (0,)
        staged = "SELECT count(*) FROM vectors_point WHERE version IS NULL"
        assert connection.execute(staged).fetchone() == (0,)
        unread = "SELECT count(*) FROM vectors_point JOIN vectors_collection AS c ON c.id = collection_id "
        assert connection.execute(f"{unread} WHERE c.name LIKE 'rag-reading:%'").fetchone() == (0,)
        jobs = "SELECT count(*) FROM kernel_job WHERE status != 'done'"
        assert connection.execute(jobs).fetchone() == (0,)
    connection.close()
