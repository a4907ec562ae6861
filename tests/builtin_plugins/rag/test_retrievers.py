"""The retrievers of the page about other frameworks: its own code, with each framework in its environment."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from kernel.testing import Running
from tests.builtin_plugins.rag.rag_support import HANDBOOK, ingest, make_base, somebody
from tests.fakes.client_environments import environment_of
from tests.fakes.kept import Kept
from tests.fakes.processes import process_environment
from tests.fakes.protocols import with_protocols

pytestmark = pytest.mark.own_installation

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "retrievers.md"
BLOCK = re.compile(r"<!-- tested: (\S+) -->\n```python\n(.*?)```", re.DOTALL)
FRAMEWORKS = ("langchain", "llama_index", "haystack")


def blocks() -> dict[str, str]:
    """The page's code by its name."""
    return dict(BLOCK.findall(PAGE.read_text()))


async def asking_token(running: Running) -> tuple[str, str]:
    """A knowledge base with the handbook, and a token of its owner's that may only ask."""
    ann = await somebody(running)
    base = await make_base(ann)
    await ingest(running, ann, base, "handbook.md", HANDBOOK)
    made = await ann.post("/v1/auth/tokens", json={"name": "agent", "scopes": ["ask"]})
    assert made.status == 201, made.body
    return base, str(made.json()["token"])


@pytest.mark.long
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_code_of_the_page(kept: Kept, framework: str, tmp_path: Path) -> None:
    programs = await asyncio.to_thread(environment_of, framework)
    running = await with_protocols(kept)
    base, token = await asking_token(running)
    code = blocks()
    (tmp_path / "platform_search.py").write_text(code["platform_search.py"])
    (tmp_path / "main.py").write_text(code[framework])
    variables = {
        "PLATFORM_URL": running.url,
        "PLATFORM_TOKEN": token,
        "PLATFORM_BASE": base,
        "HAYSTACK_TELEMETRY_ENABLED": "False",
        "HOME": str(tmp_path),
    }
    process = await asyncio.create_subprocess_exec(
        *(programs / "python", tmp_path / "main.py"),
        env=process_environment(variables),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(120):
        output, problems = await process.communicate()
    assert process.returncode == 0, problems.decode()[-2000:]
    assert output.decode().startswith("handbook.md ") and "130 EUR" in output.decode()


def test_each_block_is_tested() -> None:
    """A framework on the page that no test runs would go wrong unnoticed."""
    assert PAGE.read_text().count("```python") == len(blocks()) == len(FRAMEWORKS) + 1
    assert {"platform_search.py", *FRAMEWORKS} == set(blocks())
