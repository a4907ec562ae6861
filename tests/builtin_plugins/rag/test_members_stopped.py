"""An archive that is deleted, cancelled or started over while it is unpacked: what is inside stays inside."""

from __future__ import annotations

import asyncio
import io
import threading
import zipfile
from typing import Any

import pytest

from builtin_plugins.documents import api as documents
from builtin_plugins.vectors.api import VECTORS
from kernel.sdk import Plugin, hookimpl
from kernel.testing import Actor, Start
from tests.builtin_plugins.rag.rag_support import make_base, path_of, somebody, upload
from tests.fakes.hash_embeddings import HashEmbeddings

NAMES = ["a.txt", "b.txt", "c.txt", "d.txt"]


class Gate(Plugin):
    """Stops before the third file of an archive is kept, once, until it is let go."""

    name = "gate"
    after = ("rag",)

    def __init__(self) -> None:
        self.arrived, self.go = threading.Event(), threading.Event()

    @hookimpl(optionalhook=True)
    def register_parsers(self) -> list[documents.DocumentParser]:
        target = "builtin_plugins.documents.text.from_text:parse"
        return [documents.DocumentParser("gate", ["application/x-gate"], target, self.detect)]

    def detect(self, head: bytes) -> str | None:
        if b"c.txt" in head and not head.startswith(b"PK") and not self.arrived.is_set():
            self.arrived.set()
            self.go.wait(30)
        return None


def archive() -> bytes:
    """Four texts."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name in NAMES:
            made.writestr(name, f"The words of {name} alone.")
    return file.getvalue()


async def statuses(ann: Actor, base: str) -> dict[str, str]:
    """The documents' states, by their names."""
    listed: list[dict[str, Any]] = (await ann.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()[
        "items"
    ]
    found = {one["filename"]: one["status"] for one in listed}
    assert len(found) == len(listed) and all(one["chunk_count"] <= 1 for one in listed)
    return found


@pytest.mark.parametrize("action", ["cancel", "cancel and retry", "delete"])
async def test_stopped_while_it_is_unpacked(
    start_platform: Start, database_url: str | None, action: str
) -> None:
    """Nothing more comes out. When the archive is tried again, all of it does, and nothing twice."""
    gate = Gate()
    running = await start_platform("rag", HashEmbeddings(), gate, env={"DATABASE_URL": database_url})
    ann = await somebody(running)
    base = await make_base(ann)
    box = (await upload(ann, base, "box.zip", archive())).json()["document_id"]
    ingestion = f"/v1/rag/knowledge-bases/{base}/ingestion"
    working = asyncio.create_task(running.run_jobs())
    assert await asyncio.to_thread(gate.arrived.wait, 30)
    if action == "delete":
        assert (await ann.delete(path_of(base, box))).status == 200
    else:
        assert (await ann.post(f"{ingestion}/cancel")).json() == {"documents": 3}
    if action == "cancel and retry":
        assert (await ann.post(f"{ingestion}/retry")).json() == {"documents": 3}
    gate.go.set()
    await working
    whole = dict.fromkeys(["box.zip", *NAMES], "completed")
    if action == "delete":
        assert await statuses(ann, base) == {"a.txt": "completed", "b.txt": "completed"}
        return
    jobs = (await ann.get(f"/v1/jobs?subject={box}")).json()["items"]
    assert jobs[-1]["status"] == "failed" and "cancelled" in jobs[-1]["error"]
    if action == "cancel":
        assert await statuses(ann, base) == dict.fromkeys(["box.zip", "a.txt", "b.txt"], "failed")
        assert (await ann.post(f"{ingestion}/retry")).json() == {"documents": 3}
        await running.run_jobs()
    assert await statuses(ann, base) == whole
    assert await running.platform.resource(VECTORS).count(f"rag:{base}") == len(whole)
