"""Servers that are programs: what they see of us, and what they hold up."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from kernel.testing import Start
from tests.builtin_plugins.mcp_client.client_support import (
    call,
    has_tools,
    naughty,
    said,
    server,
    started,
    until,
)


async def test_a_silent_one_holds_nothing_up(start_platform: Start) -> None:
    """A server that never says a word delays neither the start nor anybody's list of tools."""
    running = await started(start_platform, {"silent": naughty("silent"), "good": naughty("good")})
    ana = await running.user("ana")
    assert await has_tools(ana, "good") == ["mcp_good_add"]
    assert (await server(ana, "silent"))["tools"] == []
    assert said(await call(ana, "mcp_good_add", a=1, b=1)).count("2")


async def test_programs_get_no_secrets(start_platform: Start, tmp_path: Path) -> None:
    """A program sees the environment that the operator gave it, and none of ours."""
    shown = "import os, json; open('env.json', 'w').write(json.dumps(dict(os.environ)))"
    peek = {"command": [sys.executable, "-c", shown], "env": {"GIVEN": "1"}, "folder": str(tmp_path)}
    running = await started(start_platform, {"peek": peek})
    admin = await running.user("boss", role="admin")
    await until(admin, "peek", problem="it has ended")
    seen = json.loads((tmp_path / "env.json").read_text(encoding="utf-8"))
    assert set(seen) - {"LC_CTYPE"} == {"GIVEN", "PATH"}
