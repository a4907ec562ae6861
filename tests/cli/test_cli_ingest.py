"""`platformctl login`, `ingest` and `ask` against a platform over HTTP."""

from __future__ import annotations

import asyncio
import json
import secrets
import stat
from pathlib import Path

import pytest_asyncio
from typer.testing import Result

from kernel.testing import Running, Start
from tests.cli.conftest import Cli
from tests.fakes.hash_embeddings import HashEmbeddings

PASSWORD = "a long enough password"


class Terminal:
    """A command line beside a platform whose jobs run."""

    def __init__(self, cli: Cli, running: Running, home: Path) -> None:
        self.cli = cli
        self.running = running
        self.env = {"PLATFORM_HOME": str(home)}
        self.session = home / "login.json"

    async def __call__(self, *words: str, given: str | None = None) -> Result:
        run = asyncio.to_thread(lambda: self.cli(*words, env=self.env, input=given))
        asked = asyncio.ensure_future(run)
        while not asked.done():
            await self.running.run_jobs()
            await asyncio.wait([asked], timeout=0.1)
        return asked.result()


@pytest_asyncio.fixture
async def terminal(cli: Cli, start_platform: Start, tmp_path: Path) -> Terminal:
    running = await start_platform("rag", HashEmbeddings())
    home = tmp_path / "client"
    home.mkdir()
    terminal = Terminal(cli, running, home)
    name = f"ann-{secrets.token_hex(4)}"
    body = {"username": name, "email": f"{name}@example.org", "password": PASSWORD}
    assert (await running.anonymous.post("/v1/auth/register", json=body)).status == 201
    done = await terminal("login", running.url, "-u", name, given=f"{PASSWORD}\n")
    assert done.exit_code == 0, done.output
    return terminal


async def test_the_whole_way(terminal: Terminal, tmp_path: Path) -> None:
    """A folder goes up, once; what is damaged is named; the answer comes with its source."""
    folder = tmp_path / "papers"
    (folder / "deep").mkdir(parents=True)
    (folder / "hotel.md").write_text("# Hotels\n\nA hotel may cost up to 130 EUR a night.\n")
    (folder / "deep" / "train.txt").write_text("Employees book trains in second class.\n")
    (folder / "deep" / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    (folder / "tune.mp3").write_bytes(b"ID3" + bytes(range(256)) * 4)
    (folder / ".hidden").write_text("not this one")
    first = await terminal("ingest", str(folder), "--kb", "Papers")
    assert first.exit_code == 1 and "2 of 4 files failed" in first.stderr
    assert "broken.pdf: The document is damaged" in first.stderr and "tune.mp3: " in first.stderr
    assert "3 uploaded, 0 there already, 2 of them read" in first.stderr
    again = await terminal(
        "ingest", str(folder / "hotel.md"), str(folder / "deep" / "train.txt"), "--kb", "Papers"
    )
    assert again.exit_code == 0 and "0 uploaded, 2 there already" in again.stderr
    asked = await terminal("ask", "What may a hotel cost?", "--kb", "Papers")
    assert asked.exit_code == 0 and "130 EUR" in asked.stdout and "[1] hotel.md" in asked.stderr
    missing = await terminal("ask", "What?", "--kb", "Nothing")
    assert missing.exit_code == 3 and "Papers" in missing.stderr


async def test_the_session(terminal: Terminal, tmp_path: Path) -> None:
    """The token is its owner's alone, renewed before it ends, and refused when it is wrong."""
    assert stat.S_IMODE(terminal.session.stat().st_mode) == 0o600
    kept = json.loads(terminal.session.read_text())
    terminal.session.write_text(json.dumps({**kept, "expires_at": 1.0}))
    file = tmp_path / "a.txt"
    file.write_text("Words to find.")
    assert (await terminal("ingest", str(file), "--kb", "Papers", "--no-wait")).exit_code == 0
    renewed = json.loads(terminal.session.read_text())
    assert renewed["expires_at"] > kept["expires_at"] - 60
    wrong = await terminal("login", terminal.running.url, "-u", "nobody", given="wrong password\n")
    assert wrong.exit_code == 1 and "not accepted" in wrong.stderr
    terminal.session.unlink()
    refused = await terminal("ingest", str(file), "--kb", "Papers")
    assert refused.exit_code == 1 and "platformctl login" in refused.stderr
