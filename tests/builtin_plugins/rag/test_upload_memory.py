"""Files go through the platform, never into it: memory stays the same whatever their size."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.fakes.processes import Served, served_platform, without_plugins

MEGABYTE = 1024 * 1024
LINE = b"A line of text that is in this file again and again, and nowhere else.\n"


def memory(pid: int, field: str) -> int:
    """A figure of the process's memory in bytes: VmRSS is now, VmHWM the most since it was reset."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(rf"{field}:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


def reset_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


async def signed_in(served: Served) -> dict[str, str]:
    account = {"username": "ann", "email": "ann@example.org", "password": "correct horse battery"}
    async with served.session.post(f"{served.url}/v1/auth/register", json=account) as answer:
        assert answer.status == 201, await answer.text()
    async with served.session.post(f"{served.url}/v1/auth/login", json=account) as answer:
        return {"Authorization": f"Bearer {(await answer.json())['access_token']}"}


async def send(served: Served, headers: dict[str, str], base: str, size: int) -> dict[str, Any]:
    async def pieces() -> AsyncIterator[bytes]:
        block = LINE * (MEGABYTE // len(LINE))
        for _ in range(size // len(block)):
            yield block
        yield b"The end of a file of %d bytes." % size

    form = aiohttp.FormData()
    form.add_field("file", pieces(), filename="large.txt", content_type="text/plain")
    path = f"{served.url}/v1/rag/knowledge-bases/{base}/upload"
    async with served.session.post(path, data=form, headers=headers) as answer:
        assert answer.status == 202, await answer.text()
        return dict(await answer.json())


@pytest.mark.long
async def test_large_upload_takes_no_memory(tmp_path: Path) -> None:
    async with served_platform(
        tmp_path / "home", "--no-worker", env=without_plugins("rag", "embeddings")
    ) as served:
        headers = await signed_in(served)
        body = {"name": "Large"}
        path = f"{served.url}/v1/rag/knowledge-bases"
        async with served.session.post(path, json=body, headers=headers) as answer:
            base = str((await answer.json())["id"])
        await send(served, headers, base, MEGABYTE)
        pid = served.process.pid
        before = memory(pid, "VmRSS")
        reset_peak(pid)
        document = await send(served, headers, base, 40 * MEGABYTE)
        grown = memory(pid, "VmHWM") - before
        assert document["size_bytes"] > 39 * MEGABYTE
        sha256 = document["sha256"]
        stored = tmp_path / "home" / "blobs" / sha256[:2] / sha256[2:]
        assert hashlib.sha256(stored.read_bytes()).hexdigest() == sha256
        assert grown < 10 * MEGABYTE, f"memory grew by {grown / MEGABYTE:.1f} MB"
