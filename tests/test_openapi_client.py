"""A client generated from the published document, by a program of somebody else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kernel.testing import platforms
from tests.fakes.client_environments import CLIENTS, environment_of
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.processes import process_environment

DOCUMENT = Path(__file__).parents[1] / "schemas" / "openapi.json"


@pytest.mark.long
async def test_a_generated_client_works(tmp_path: Path) -> None:
    """The document is valid, and the client made from it signs in, uploads and asks."""
    python = await asyncio.to_thread(lambda: environment_of("openapi") / "python")
    async with platforms(tmp_path / "home") as start:
        running = await start("rag_methods", "rag_exchange", "extractive_answers", HashEmbeddings)
        ann = await running.user("ann")
        script = str(CLIENTS / "openapi_user.py")
        arguments = (script, str(DOCUMENT), running.url, "ann", ann.password)
        process = await asyncio.create_subprocess_exec(
            str(python),
            *arguments,
            env=process_environment({}),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        async with asyncio.timeout(120):
            uploaded = await process.stdout.readline()
            await running.run_jobs()
            _, said = await process.communicate(b"\n")
    assert (uploaded, process.returncode) == (b"uploaded\n", 0), said.decode()[-3000:]
