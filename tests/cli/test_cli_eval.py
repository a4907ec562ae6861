"""`platformctl eval run` against a platform over HTTP."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from xml.etree import ElementTree

from typer.testing import Result

from kernel.testing import Start
from tests.builtin_plugins.evaluation.evaluation_support import QUESTIONS, boot, nordlys
from tests.builtin_plugins.rag.rag_support import path_of
from tests.cli.conftest import Cli


async def test_demands(cli: Cli, start_platform: Start, tmp_path: Path) -> None:
    """Met: exit code 0, a table, files. Missed, or worse than before: 1, with the worst questions."""
    running = await boot(start_platform)
    ann, base = await nordlys(running)
    env = {"PLATFORM_API_URL": running.url, "PLATFORM_API_TOKEN": ann.token or ""}

    async def evaluate(*options: str) -> Result:
        command = ("eval", "run", base, "--set", str(QUESTIONS), *options)
        asked = asyncio.ensure_future(asyncio.to_thread(lambda: cli(*command, env=env)))
        while not asked.done():
            await running.run_jobs()
            await asyncio.wait([asked], timeout=0.2)
        return asked.result()

    good = await evaluate("--fail-under", "ndcg@10=0.2", "--out", str(tmp_path / "report"))
    assert good.exit_code == 0, good.output
    assert "standard hybrid k10" in (tmp_path / "report" / "table.md").read_text()
    ElementTree.parse(tmp_path / "report" / "plot.svg")
    missed = await evaluate("--fail-under", "ndcg@10=1.01")
    assert missed.exit_code == 1 and "less than 1.01" in missed.stderr
    assert "WORST QUESTIONS" in missed.stdout
    runs = (await ann.get("/v1/rag/evaluation/runs")).json()["items"]
    same = await evaluate("--compare-with", runs[-1]["id"])
    assert same.exit_code == 0, same.output
    other = await evaluate("--compare-with", runs[-1]["id"], "-c", "hybrid=false")
    assert other.exit_code == 1 and "standard" in other.stderr
    for one in (await ann.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"]:
        if one["filename"] != "travel.md":
            assert (await ann.delete(path_of(base, one["document_id"]))).status == 200
    worse = await evaluate("--compare-with", runs[-1]["id"])
    assert worse.exit_code == 1 and re.search(r" -0\.\d", worse.stderr), worse.output
    assert "WORST QUESTIONS" in worse.stdout


async def test_wrong_use(cli: Cli, start_platform: Start, tmp_path: Path) -> None:
    """A measure that is none, no token, a platform that isn't there, and a file with a mistake are named."""
    running = await boot(start_platform)
    ann, base = await nordlys(running)
    env = {"PLATFORM_API_URL": running.url, "PLATFORM_API_TOKEN": ann.token or ""}
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text('{"question": "x"}\n')

    async def said(file: Path, *options: str, **more: str) -> tuple[int, str]:
        command = ("eval", "run", base, "--set", str(file), *options)
        done = await asyncio.to_thread(lambda: cli(*command, env=env | more))
        return done.exit_code, done.stderr

    code, text = await said(QUESTIONS, "--fail-under", "latency_ms=3")
    assert code == 2 and "recall@5" in text
    code, text = await said(QUESTIONS, PLATFORM_API_TOKEN="")
    assert code == 1 and "PLATFORM_API_TOKEN" in text
    code, text = await said(QUESTIONS, PLATFORM_API_URL="http://127.0.0.1:9")
    assert code == 1 and "PLATFORM_API_URL" in text
    code, text = await said(wrong)
    assert code == 1 and "Line 1" in text
