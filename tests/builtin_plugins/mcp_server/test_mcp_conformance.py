"""The official conformance runner, unmodified, against the MCP server in both eras.

It is written for SDKs: most of its scenarios ask for tools, prompts and resources with fixed names. Held to
are those that test what a server with tools and resources of its own must do.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel.testing import Running
from tests.builtin_plugins.mcp_server.mcp_support import program
from tests.builtin_plugins.mcp_server.relay import relay
from tests.builtin_plugins.rag.rag_support import somebody
from tests.fakes.npm import npm_folder

pytestmark = pytest.mark.asyncio(loop_scope="session")

BOTH = {
    "tools-list",
    "tools-call-simple-text",
    "tools-call-error",
    "json-schema-2020-12",
    "server-sse-multiple-streams",
    "resources-list",
    "dns-rebinding-protection",
}
SCENARIOS = {
    "2026-07-28": BOTH
    | {
        "server-stateless",
        "caching",
        "http-header-validation",
        "sep-2164-resource-not-found",
        "input-required-result-missing-input-response",
        "input-required-result-unsupported-methods",
        "input-required-result-ignore-extra-params",
        "input-required-result-validate-input",
    },
    "2025-11-25": BOTH | {"server-initialize", "server-session-lifecycle", "ping", "server-sse-polling"},
}
# Of what this server does not have, and does not declare.
NOT_OFFERED = {"sep-2549-prompts-list-caching-hints"}


@pytest.fixture(scope="module")
def runner() -> Path:
    """The runner's script, and beside it what lets it run on Node.js 20."""
    return npm_folder(Path(__file__).parent / "conformance", "the MCP conformance tests")


@pytest.mark.long
@pytest.mark.parametrize("version", SCENARIOS)
async def test_conformance(mcp: Running, runner: Path, tmp_path: Path, version: str) -> None:
    """Every check of these scenarios passes, but for those that ask for tools made for the runner."""
    async with relay(await program(await somebody(mcp))) as url:
        script = runner / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
        command = ["node", "--import", runner / "node20.mjs", script, "server", "--url", url]
        options = ["--suite", "all", "--spec-version", version, "--timeout", "10000", "-o", tmp_path]
        process = await asyncio.create_subprocess_exec(
            *map(str, [*command, *options]),
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
    found = {name: list(checks) for name, checks in results(tmp_path)}
    assert set(found) >= SCENARIOS[version], said.decode()[-2000:]
    failed = [
        f"{name}: {check['id']}: {check.get('errorMessage')}"
        for name in SCENARIOS[version]
        for check in found[name]
        if check["status"] == "FAILURE" and check["id"] not in NOT_OFFERED
        if not check.get("errorMessage", "").startswith("Not testable:")
    ]
    assert failed == []
    passed = [check for name in SCENARIOS[version] for check in found[name] if check["status"] == "SUCCESS"]
    assert len(passed) > (55 if version == "2026-07-28" else 18)


def results(folder: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """(scenario, checks) of a run."""
    for path in folder.glob("server-*/checks.json"):
        name = re.sub(r"^server-|-\d{4}-\d\d-\d\dT[\d-]+Z$", "", path.parent.name)
        yield name, json.loads(path.read_text(encoding="utf-8"))
