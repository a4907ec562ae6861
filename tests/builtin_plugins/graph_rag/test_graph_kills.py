"""A worker that dies while it builds a graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel.testing import Start, environment, eventually, somebody
from tests.builtin_plugins.graph_rag.build_worker import StoppingPlugin
from tests.builtin_plugins.graph_rag.graph_support import (
    INSTITUTE,
    STATION,
    documents,
    ingest,
    make_base,
    switch,
)
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.processes import running_process

pytestmark = pytest.mark.long


@pytest.mark.durability
async def test_killed_in_mid_build(
    start_platform: Start, platform_home: Path, database_url: str | None, tmp_path: Path
) -> None:
    """Nobody sees half a graph, and the next worker builds what is missing."""
    env = {"DATABASE_URL": database_url, "PLATFORM_GRAPH_RAG_ENGINE": "stopping"}
    running = await start_platform("rag", "graph_rag", HashEmbeddings(), StoppingPlugin(), env=env)
    ann = await somebody(running)
    base = await make_base(ann)
    texts = (INSTITUTE, STATION, "Emil Dahl bakes bread in Bergen.")
    ids = {await ingest(running, ann, base, f"{n}.txt", text) for n, text in enumerate(texts)}
    await switch(ann, base, True)
    command = ("-m", "tests.builtin_plugins.graph_rag.build_worker")
    reached = tmp_path / "reached"
    values = environment(platform_home, {**env, "REACHED": str(reached)})
    async with running_process(*command, env=values, log=tmp_path / "first.log") as worker:
        await eventually(reached.exists, 60)
        await worker.kill()
    built = await documents(ann)
    assert len(built) == 1

    async def is_complete() -> bool:
        return set(await documents(ann)) == ids

    async with running_process(*command, env={**values, "REACHED": ""}, log=tmp_path / "second.log"):
        await eventually(is_complete, 60)
