"""Originals that the blob store has lost in whole or in part."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel.testing import Start
from tests.builtin_plugins.rag.rag_support import make_base, path_of, record, somebody, upload
from tests.fakes.hash_embeddings import HashEmbeddings

TEXT = "Words that count. " * 20


@pytest.mark.parametrize("name", ["together.txt", "alone.html"])
async def test_half_an_original(start_platform: Start, tmp_path: Path, name: str) -> None:
    """A part is neither ingested as if it were the whole nor served; uploading the file again repairs it."""
    running = await start_platform("rag", HashEmbeddings, home=tmp_path / "home")
    ann = await somebody(running)
    base = await make_base(ann)
    document = (await upload(ann, base, name, TEXT)).json()["document_id"]
    (stored,) = (tmp_path / "home" / "blobs").glob("??/*")
    stored.write_bytes(stored.read_bytes()[:50])
    await running.run_jobs()
    failed = await record(ann, base, document)
    assert (failed["status"], failed["chunk_count"]) == ("failed", 0)
    answer = await ann.get(path_of(base, document, "/content"))
    assert (answer.status, answer.json()["code"]) == (503, "unavailable")
    again = (await upload(ann, base, name, TEXT)).json()["document_id"]
    await running.run_jobs()
    assert (await record(ann, base, again))["status"] == "completed"
    assert (await ann.get(path_of(base, again, "/content"))).body == TEXT.encode()


async def test_an_original_that_is_gone(start_platform: Start, tmp_path: Path) -> None:
    running = await start_platform("rag", HashEmbeddings, home=tmp_path / "home")
    ann = await somebody(running)
    base = await make_base(ann)
    document = (await upload(ann, base, "a.txt", TEXT)).json()["document_id"]
    (stored,) = (tmp_path / "home" / "blobs").glob("??/*")
    stored.unlink()
    answer = await ann.get(path_of(base, document, "/content"))
    assert (answer.status, answer.json()["code"]) == (503, "unavailable")
