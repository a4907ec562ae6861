"""The reference servers from npm behind the platform: their tools are called like its own."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kernel.testing import Start
from tests.builtin_plugins.mcp_client.client_support import call, has_tools, said, started
from tests.fakes.npm import npm_folder
from tests.fakes.processes import free_port
from tests.fakes.waiting import eventually


@pytest.fixture(scope="module")
def packages() -> Path:
    """Where the servers are installed."""
    folder = npm_folder(Path(__file__).parent / "npm", "the tests with MCP's reference servers")
    return folder / "node_modules/@modelcontextprotocol"


def node() -> str:
    """The program, by its whole path: a server gets no search path of ours."""
    return shutil.which("node") or "node"


@pytest.mark.long
async def test_everything_as_a_program(start_platform: Start, packages: Path) -> None:
    """server-everything over standard input: text, structured data, images, an error."""
    command = [node(), str(packages / "server-everything/dist/index.js"), "stdio"]
    running = await started(start_platform, {"everything": {"command": command}})
    ann = await running.user("ann")
    tools = await has_tools(ann, "everything")
    assert "mcp_everything_echo" in tools
    assert "Hello" in said(await call(ann, "mcp_everything_echo", message="Hello"))
    assert "5" in said(await call(ann, "mcp_everything_get_sum", a=2, b=3))
    assert said(await call(ann, "mcp_everything_get_tiny_image"))
    assert (await call(ann, "mcp_everything_get_sum", a="x"))["isError"] is True


async def test_everything_at_an_address(start_platform: Start, packages: Path) -> None:
    """server-everything over Streamable HTTP: a session in the older era, answers as streams."""
    async with listening(packages) as url:
        running = await started(start_platform, {"everything": {"url": url}})
        ann = await running.user("ann")
        assert "mcp_everything_echo" in await has_tools(ann, "everything")
        assert "Hello" in said(await call(ann, "mcp_everything_echo", message="Hello"))
        assert "5" in said(await call(ann, "mcp_everything_get_sum", a=2, b=3))


async def test_filesystem(start_platform: Start, packages: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "note.txt").write_text("The treasure is silver.", encoding="utf-8")
    command = [node(), str(packages / "server-filesystem/dist/index.js"), str(folder)]
    servers = {"files": {"command": command, "allow": ["read_text_file", "list_*"], "trusted": True}}
    running = await started(start_platform, servers)
    ann = await running.user("ann")
    tools = await has_tools(ann, "files")
    assert "mcp_files_read_text_file" in tools
    assert "mcp_files_write_file" not in tools
    found = await call(ann, "mcp_files_read_text_file", path=str(folder / "note.txt"))
    assert "The treasure is silver." in said(found)
    assert "note.txt" in said(await call(ann, "mcp_files_list_directory", path=str(folder)))
    outside = await call(ann, "mcp_files_read_text_file", path="/etc/passwd")
    assert outside["isError"] is True
    assert "root:" not in said(outside)


@asynccontextmanager
async def listening(packages: Path) -> AsyncIterator[str]:
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        node(),
        str(packages / "server-everything/dist/index.js"),
        "streamableHttp",
        env={"PORT": str(port)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await eventually(lambda: answers(port), 20)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        await process.wait()


async def answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True
