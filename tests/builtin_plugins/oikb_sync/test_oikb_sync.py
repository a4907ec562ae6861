"""The synchronizer of Open WebUI: its protocol, and the program itself with a folder."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import FormData

from builtin_plugins.oikb_sync.models import SyncedFile
from kernel.sdk import Unit
from kernel.testing import Actor, Reply, Running
from tests.builtin_plugins.rag.rag_support import NOWHERE, make_base, record, somebody, upload
from tests.fakes.client_environments import environment_of
from tests.fakes.kept import Kept
from tests.fakes.processes import process_environment
from tests.fakes.protocols import with_protocols

pytestmark = pytest.mark.asyncio(loop_scope="session")

API = "/v1/rag/oikb/api/v1"


@dataclass
class Synchronized:
    """A knowledge base, filled as the synchronizer does it."""

    running: Running
    ann: Actor
    base: str

    async def compare(self, files: Mapping[str, str], actor: Actor | None = None) -> Reply:
        manifest = [
            {"filename": path.rpartition("/")[2], "path": path.rpartition("/")[0], "checksum": checksum(text)}
            for path, text in files.items()
        ]
        path = f"{API}/knowledge/{self.base}/sync/diff"
        return await (actor or self.ann).post(path, json={"manifest": manifest})

    async def send(self, path: str, text: str, actor: Actor | None = None) -> Reply:
        folder, _, name = path.rpartition("/")
        note = {"knowledge_id": self.base, "file_hash": checksum(text), "directory_id": folder or None}
        form = FormData({"metadata": json.dumps(note)})
        form.add_field("file", text.encode(), filename=name)
        return await (actor or self.ann).post(f"{API}/files/", data=form)

    async def clean_up(self, *ids: str) -> int:
        path = f"{API}/knowledge/{self.base}/sync/cleanup"
        answer = await self.ann.post(path, json={"file_ids": ids})
        assert answer.status == 200, answer.body
        return int(answer.json()["removed"])

    async def names(self) -> set[str]:
        answer = await self.ann.get(f"/v1/rag/knowledge-bases/{self.base}/documents?status=completed")
        return {one["filename"] for one in answer.json()["items"]}


def checksum(text: str) -> str:
    """What the synchronizer's folders have for a checksum."""
    return hashlib.sha256(text.encode()).hexdigest()


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["sqlite", "postgresql"])
async def running(kept: Kept, request: pytest.FixtureRequest) -> AsyncIterator[Running]:
    yield await with_protocols(kept, request.param)


@pytest_asyncio.fixture(loop_scope="session")
async def synchronized(running: Running) -> Synchronized:
    ann = await somebody(running)
    return Synchronized(running, ann, await make_base(ann))


async def test_only_differences_are_sent(synchronized: Synchronized) -> None:
    first = {"a.md": "# A", "docs/b.md": "# B", "docs/c.md": "# C"}
    found = (await synchronized.compare(first)).json()
    assert (len(found["added"]), found["directory_map"]) == (3, {"docs": "docs"})
    ids = {}
    for path, text in first.items():
        answer = await synchronized.send(path, text)
        assert answer.status == 200, answer.body
        ids[path] = answer.json()["id"]
    await synchronized.running.run_jobs()
    second = {"a.md": "# A", "docs/b.md": "# B, changed"}
    found = (await synchronized.compare(second)).json()
    assert (found["unmodified_count"], found["added"]) == (1, [])
    assert [one["file_id"] for one in found["deleted"]] == [ids["docs/c.md"]]
    (changed,) = found["modified"]
    assert await synchronized.clean_up(ids["docs/c.md"], changed["stale_file_id"]) == 1
    assert await synchronized.names() == {"a.md", "b.md"}, (
        "the earlier version answers until the next is read"
    )
    await synchronized.send("docs/b.md", second["docs/b.md"])
    await synchronized.running.run_jobs()
    found = (await synchronized.compare(second)).json()
    assert (found["unmodified_count"], found["modified"], found["deleted"]) == (2, [], [])
    assert await synchronized.names() == {"a.md", "b.md"}


async def test_documents_of_others_are_left_alone(synchronized: Synchronized) -> None:
    mine = (await upload(synchronized.ann, synchronized.base, "own.md", "# Own")).json()["document_id"]
    await synchronized.send("a.md", "# A")
    await synchronized.running.run_jobs()
    assert (await synchronized.compare({})).json()["deleted"][0]["filename"] == "a.md"
    assert await synchronized.clean_up(mine) == 0
    answer = await synchronized.ann.post(f"{API}/knowledge/{synchronized.base}/reset")
    assert answer.json() == {"removed": 1}
    assert (await record(synchronized.ann, synchronized.base, mine))["filename"] == "own.md"


async def test_document_that_a_person_deleted_is_sent_again(synchronized: Synchronized) -> None:
    made = (await synchronized.send("a.md", "# A")).json()["id"]
    await synchronized.running.run_jobs()
    path = f"/v1/rag/knowledge-bases/{synchronized.base}/documents/{made}"
    assert (await synchronized.ann.delete(path)).status == 200
    assert len((await synchronized.compare({"a.md": "# A"})).json()["added"]) == 1


async def test_upload_that_was_cut_off(synchronized: Synchronized) -> None:
    """Its document is sent again, or removed if its source has it no longer; before, it is not listed."""
    await synchronized.send("a.md", "# A")
    await synchronized.running.run_jobs()
    await synchronized.running.platform.database.write(_cut_off, synchronized.base)
    assert len((await synchronized.compare({"a.md": "# A"})).json()["added"]) == 1
    listed = await synchronized.ann.get(f"{API}/knowledge/{synchronized.base}/files")
    assert listed.json()["total"] == 0
    (stale,) = (await synchronized.compare({})).json()["deleted"]
    assert await synchronized.clean_up(stale["file_id"]) == 1
    assert await synchronized.names() == set()


def _cut_off(unit: Unit, base_id: str) -> None:
    """What is stored if the process is killed after the document, before the path's checksum."""
    row = unit.session.get_one(SyncedFile, (base_id, "a.md"))
    row.document_id, row.checksum = "", ""


async def test_refused_upload_leaves_no_path(synchronized: Synchronized) -> None:
    assert (await synchronized.send("a.md", "")).status == 422
    assert (await synchronized.compare({})).json()["deleted"] == []


async def test_strangers_find_nothing(synchronized: Synchronized) -> None:
    other = await somebody(synchronized.running)
    refused = [await synchronized.compare({}, other), await synchronized.send("a.md", "# A", other)]
    refused.append(await other.get(f"{API}/knowledge/{synchronized.base}/files"))
    assert {one.status for one in refused} == {404}


@pytest.mark.parametrize(
    ("note", "field"),
    [
        ("", ""),
        ("{", ""),
        ('{"knowledge_id": "x"}', ".file_hash"),
        ('{"file_hash": "x"}', ".knowledge_id"),
        (r'{"knowledge_id": "x", "file_hash": "\u0000"}', ".file_hash"),
        (r'{"knowledge_id": "x", "file_hash": "x", "directory_id": "\u0000"}', ".directory_id"),
    ],
)
async def test_upload_without_its_note(synchronized: Synchronized, note: str, field: str) -> None:
    form = FormData({"metadata": note})
    form.add_field("file", b"# A", filename="a.md")
    answer = await synchronized.ann.post(f"{API}/files/", data=form)
    (problem,) = answer.json()["detail"]
    assert answer.status == 422 and ".".join(problem["loc"]) == f"body.metadata{field}"


@pytest.mark.long
async def test_the_program_itself(synchronized: Synchronized, tmp_path: Path) -> None:
    """`oikb sync` of a folder: at first, unchanged, and after changes."""
    program = await asyncio.to_thread(environment_of, "oikb")
    source = tmp_path / "source"
    (source / "docs").mkdir(parents=True)
    (source / "a.md").write_text("# A")
    (source / "docs" / "b.md").write_text("# B")
    environment: dict[str, Any] = {
        "OPEN_WEBUI_URL": f"{synchronized.running.url}/v1/rag/oikb",
        "OPEN_WEBUI_API_KEY": str(synchronized.ann.token),
    }

    async def run(*arguments: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *(program / "oikb", *arguments, "--kb-id", synchronized.base),
            env=process_environment({**environment, "HOME": str(tmp_path)}),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(60):
            said, _ = await process.communicate()
        assert process.returncode == 0, said.decode()[-2000:]
        await synchronized.running.run_jobs()
        return said.decode()

    assert "2 added" in await run("sync", str(source))
    assert await synchronized.names() == {"a.md", "b.md"}
    assert "2 unchanged" in await run("sync", str(source))
    (source / "a.md").unlink()
    (source / "docs" / "b.md").write_text("# B, changed")
    said = await run("sync", str(source))
    assert "1 modified" in said and "1 deleted" in said
    assert await synchronized.names() == {"b.md"}
    assert "docs/b.md" in await run("ls") and "Handbook" in await run("status")


async def test_unknown_base(synchronized: Synchronized) -> None:
    assert (await synchronized.ann.get(f"{API}/knowledge/{NOWHERE}")).status == 404
