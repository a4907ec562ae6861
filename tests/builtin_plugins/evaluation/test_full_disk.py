"""Questions that find no room on the disk."""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path

from kernel.testing import Start
from tests.builtin_plugins.evaluation.evaluation_support import API, make_set
from tests.builtin_plugins.rag.rag_support import make_base, somebody
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.small_disk import small_disk


async def test_refused_as_declared(start_platform: Start, tmp_path: Path) -> None:
    """An upload is 507, which the API's document names."""
    with small_disk(tmp_path / "disk", 14) as disk:
        env = {"PLATFORM_MIN_FREE_DISK_MB": "1"}
        running = await start_platform(
            "rag", "evaluation", "api_docs", HashEmbeddings, home=disk.folder / "home", env=env
        )
        ann = await somebody(running)
        set_id = await make_set(ann, await make_base(ann), [{"question": "Why?", "unanswerable": True}])
        disk.fill()
        jsonl = {"Content-Type": "application/jsonl"}
        async with asyncio.timeout(60):
            for number in count():
                line = b'{"question": "%d %s", "unanswerable": true}' % (number, b"x" * 300)
                answer = await ann.post(f"{API}/sets/{set_id}/upload", data=line, headers=jsonl)
                if answer.status != 200:
                    break
        assert (answer.status, answer.json()["code"]) == (507, "storage_full")
        paths = (await ann.get("/openapi.json")).json()["paths"]
        assert "507" in paths["/v1/rag/evaluation/sets/{set_id}/upload"]["post"]["responses"]
