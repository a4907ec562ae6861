"""`platformctl login`, `ingest` and `ask` against a platform over HTTP."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import secrets
import signal
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from rich.console import Console
from typer.testing import Result

from builtin_plugins.rag.commands.ingest_bars import Bars, IngestReading
from kernel.testing import Running, Start
from tests.builtin_plugins.documents.sample_documents import pdf
from tests.cli.conftest import Cli
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.processes import process_environment
from tests.fakes.terminal import screen, shown_by
from tests.fakes.website import site_with

PASSWORD = "a long enough password"


class Terminal:
    """A command line beside a platform whose jobs run."""

    def __init__(self, cli: Cli, running: Running, home: Path) -> None:
        self.cli = cli
        self.running = running
        self.env = {"PLATFORM_HOME": str(home)}
        self.session = home / "login.json"
        self.name = ""
        # Jobs run once it is set.
        self.work = asyncio.Event()
        self.work.set()

    async def __call__(self, *words: str, given: str | None = None) -> Result:
        run = asyncio.to_thread(lambda: self.cli(*words, env=self.env, input=given))
        asked = asyncio.ensure_future(run)
        while not asked.done():
            if self.work.is_set():
                await self.running.run_jobs()
            await asyncio.wait([asked], timeout=0.1)
        return asked.result()

    async def ingest(self, *files: Path) -> tuple[int, dict[str, Any]]:
        """Upload to the base "Papers": the exit code and the report for programs."""
        done = await self("ingest", *map(str, files), "--kb", "Papers", "--json")
        return done.exit_code, json.loads(done.stdout)


@pytest_asyncio.fixture
async def terminal(cli: Cli, start_platform: Start, tmp_path: Path) -> Terminal:
    return await signed_in(
        cli, await start_platform("rag", "extractive_answers", HashEmbeddings()), tmp_path / "client"
    )


async def signed_in(cli: Cli, running: Running, home: Path) -> Terminal:
    """A command line of somebody who has just signed in."""
    terminal = Terminal(cli, running, home)
    name = terminal.name = f"ann-{secrets.token_hex(4)}"
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
    (folder / "empty.txt").touch()
    (folder / ".hidden").write_text("not this one")
    first = await terminal("ingest", str(folder), "--kb", "Papers")
    assert first.exit_code == 1 and "3 of 5 files failed" in first.stderr
    assert [name for name in ("empty.txt: ", "broken.pdf: ", "tune.mp3: ") if name not in first.stderr] == []
    assert re.findall(r"\d+", first.stderr.splitlines()[-2]) == ["3", "0", "2"]
    code, again = await terminal.ingest(folder / "hotel.md", folder / "deep" / "train.txt")
    assert (code, again["uploaded"], again["skipped"], again["completed"]) == (0, 0, 2, 2)
    asked = await terminal("ask", "What may a hotel cost?", "--kb", "Papers")
    assert asked.exit_code == 0 and "130 EUR" in asked.stdout and "[1] hotel.md" in asked.stderr
    filters = (
        "--filter",
        "source=hotel.md",
        "--filter",
        '{"type": "exists", "key": "title", "value": false}',
    )
    again = await terminal("ask", "What may a hotel cost?", "--kb", "Papers", *filters)
    assert again.stdout == asked.stdout
    other = ("What may a hotel cost?", "--kb", "Papers", "--filter")
    assert "130 EUR" not in (await terminal("ask", *other, "filename=other.md")).stdout
    found = await terminal("search", *other, "source=hotel.md")
    assert found.exit_code == 0 and "130 EUR" in found.stdout and "hotel.md" in found.stderr
    assert (await terminal("search", *other, "source=other.md", "--json")).stdout.count('"text"') == 0
    assert (await terminal("search", *other, "hotel.md")).exit_code == 2
    assert "colour" in (await terminal("search", *other, "colour=red")).stderr
    missing = await terminal("ask", "What?", "--kb", "Nothing")
    assert missing.exit_code == 3 and "Papers" in missing.stderr


async def documents_of(terminal: Terminal) -> list[dict[str, Any]]:
    """The documents of the only knowledge base."""
    login = {"Authorization": f"Bearer {json.loads(terminal.session.read_text())['token']}"}
    bases = (await terminal.running.anonymous.get("/v1/rag/knowledge-bases", headers=login)).json()["items"]
    path = f"/v1/rag/knowledge-bases/{bases[0]['id']}/documents"
    return list((await terminal.running.anonymous.get(path, headers=login)).json()["items"])


async def test_fields_are_declared_and_given_values(terminal: Terminal, tmp_path: Path) -> None:
    """Of new files and of those that are there already; a wrong value is named with its field."""
    (tmp_path / "lease.md").write_text("The office in Bergen is rented until the end of the year.\n")
    ingest = ("ingest", str(tmp_path / "lease.md"), "--kb", "Papers")
    assert (await terminal(*ingest)).exit_code == 0
    (tmp_path / "more.md").write_text("The office in Oslo is rented as well.\n")
    declared = await terminal("fields", "set", "year", "--kind", "number", "--kb", "Papers")
    assert declared.exit_code == 0, declared.output
    tags = ("--set", "tags=lease", "--set", "tags=Bergen")
    assert (await terminal(*ingest, str(tmp_path / "more.md"), "--set", "year=2026", *tags)).exit_code == 0
    listed = json.loads((await terminal("fields", "list", "--kb", "Papers", "--json")).stdout)
    assert [one["kind"] for one in listed if one["name"] == "year"] == ["number"]
    assert "year" in (await terminal("fields", "list", "--kb", "Papers")).stdout
    for document in await documents_of(terminal):
        assert document["metadata"] == {"year": 2026, "tags": ["lease", "Bergen"], "language": "en"}
    wrong = await terminal(*ingest, "--set", "year=never")
    assert wrong.exit_code == 1 and "year" in wrong.stderr
    assert (await terminal(*ingest, "--set", "year")).exit_code == 2
    assert (await terminal("fields", "remove", "year", "--kb", "Papers")).exit_code == 0
    assert (await terminal("fields", "remove", "year", "--kb", "Papers")).exit_code == 1


async def test_a_changed_file_replaces(terminal: Terminal, tmp_path: Path) -> None:
    """Its earlier version answers no more; the same file elsewhere stays what it is."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "hotel.md").write_text(f"A hotel may cost up to 130 EUR in {folder}.\n")
    folders = [str(tmp_path / name) for name in ("one", "two")]
    assert (await terminal("ingest", *folders, "--kb", "Papers")).exit_code == 0
    (tmp_path / "one" / "hotel.md").write_text("A hotel may cost up to 150 EUR in one.\n")
    again = await terminal("ingest", *folders, "--kb", "Papers", "--json")
    counts = json.loads(again.stdout)
    assert (counts["uploaded"], counts["replaced"], counts["skipped"]) == (1, 1, 1)
    asked = await terminal("ask", "What may a hotel cost in one?", "--kb", "Papers")
    assert "150 EUR" in asked.stdout and "130 EUR in one" not in asked.stdout
    last = json.loads((await terminal("ingest", *folders, "--kb", "Papers", "--json")).stdout)
    assert (last["uploaded"], last["skipped"]) == (0, 2)
    [path] = [one["path"] for one in await documents_of(terminal) if one["version"] == 2]
    shown = await terminal("rag", "diff", path, "--kb", "Papers")
    lines = [f"{sign} A hotel may cost up to {cost} EUR in one." for sign, cost in (("-", 130), ("+", 150))]
    assert (shown.exit_code, shown.stdout.splitlines()) == (0, ["@ passage 1", *lines])
    assert re.search(rf"version 2: uploaded \S+ \S+ UTC by {terminal.name}\b", shown.stderr)
    same = await terminal("rag", "diff", path, "--kb", "Papers", "--from", "1", "--to", "2", "--json")
    assert [one["kind"] for one in json.loads(same.stdout)["items"]] == ["changed"]
    assert (await terminal("rag", "diff", path, "--kb", "Papers", "--from", "7")).exit_code == 3


async def test_contradictions(terminal: Terminal, tmp_path: Path) -> None:
    folder = tmp_path / "fares"
    folder.mkdir()
    for year, amount in ((2025, 185), (2026, 210)):
        (folder / f"fares-{year}.md").write_text(f"# Fares\n\nThe ferry costs {amount} NOK per person.\n")
        assert (await terminal("ingest", str(folder), "--kb", "Fares")).exit_code == 0
    assert (await terminal("rag", "contradictions", "--kb", "Fares")).stdout == ""
    found = await terminal("rag", "contradictions", "--kb", "Fares", "--compare")
    older, newer = found.stdout.splitlines()[:2]
    assert older.startswith("fares-2025.md, 20") and older.endswith("The ferry costs 185 NOK per person.")
    assert newer.startswith("fares-2026.md, 20") and newer.endswith("The ferry costs 210 NOK per person.")


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
    assert wrong.exit_code == 1 and "were rejected" in wrong.stderr
    terminal.session.unlink()
    refused = await terminal("ingest", str(file), "--kb", "Papers")
    assert refused.exit_code == 1 and "platformctl login" in refused.stderr


async def test_a_short_session(cli: Cli, start_platform: Start, tmp_path: Path) -> None:
    """Where tokens are made for minutes, one is renewed in its second half, and not for each call."""
    running = await start_platform(
        "rag", "extractive_answers", HashEmbeddings(), env={"JWT_EXPIRATION_MINUTES": "5"}
    )
    terminal = await signed_in(cli, running, tmp_path / "client")
    kept = json.loads(terminal.session.read_text())
    file = tmp_path / "a.txt"
    file.write_text("Words to find.")
    ingest = ("ingest", str(file), "--kb", "Papers", "--no-wait")
    assert (await terminal(*ingest)).exit_code == 0
    assert json.loads(terminal.session.read_text()) == kept
    terminal.session.write_text(json.dumps({**kept, "expires_at": kept["expires_at"] - 200}))
    assert (await terminal(*ingest)).exit_code == 0
    renewed = json.loads(terminal.session.read_text())
    assert renewed["token"] != kept["token"] and renewed["renew_before"] == 150


async def test_odd_names(terminal: Terminal, tmp_path: Path) -> None:
    """A name that is not UTF-8, or that would write on the screen, goes up without what is odd about it."""
    folder = tmp_path / "papers"
    folder.mkdir()
    for name in (b"bad\xff.txt", b"two\nlines.txt", b"red\x1b[31m.txt", b"zz.txt"):
        (folder / os.fsdecode(name)).write_text(f"Words of {name.hex()}")
    code, first = await terminal.ingest(folder)
    assert (code, first["uploaded"], first["skipped"], first["completed"]) == (0, 4, 0, 4)
    code, again = await terminal.ingest(folder)
    assert (code, again["uploaded"], again["skipped"]) == (0, 0, 4)


async def test_odd_names_are_told_plainly(terminal: Terminal, tmp_path: Path) -> None:
    """Where such a file fails, its name is one line without control characters and direction marks."""
    files = [
        tmp_path / os.fsdecode(name)
        for name in (b"bad\xff.pdf", b"red\x1b[31m\n.pdf", "to\u202efdp.exe".encode())
    ]
    for number, file in enumerate(files):
        file.write_text(f"%PDF-1.4 {number}")
    told = await terminal("ingest", *map(str, files), "--kb", "Papers")
    assert told.exit_code == 1 and "3 of 3 files failed" in told.stderr
    assert "bad\\xff.pdf: " in told.stderr
    assert "red\\x1b[31m\\n.pdf: " in told.stderr
    assert "to\\u202efdp.exe: " in told.stderr


async def test_files_inside(terminal: Terminal, tmp_path: Path) -> None:
    """The report names the files left out of an archive, and those of its files that failed."""
    good, bad = tmp_path / "good.zip", tmp_path / "bad.zip"
    with zipfile.ZipFile(good, "w") as archive:
        archive.writestr("june.txt", "The lighthouse was painted in June.")
        archive.writestr("empty.txt", "")
    code, left = await terminal.ingest(good)
    assert (code, left["uploaded"], left["skipped"], left["completed"]) == (0, 1, 0, 1)
    assert (left["inside"], left["inside_completed"]) == (1, 1)
    [[name, notice]] = left["notices"]
    assert name.endswith("good.zip") and "empty.txt (empty)" in notice
    with zipfile.ZipFile(bad, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("july.txt", "The lighthouse was painted again.")
        archive.writestr("broken.pdf", b"%PDF-1.4 nothing")
    code, failed = await terminal.ingest(bad)
    assert (code, failed["inside"], failed["inside_completed"]) == (1, 2, 1)
    assert [name for name, _ in failed["problems"]] == [f"broken.pdf (inside {bad})"]
    code, again = await terminal.ingest(good)
    assert (code, again["skipped"], again["inside"], again["inside_completed"]) == (0, 1, 1, 1)


async def test_uploads_of_others_are_not_from_inside(terminal: Terminal, tmp_path: Path) -> None:
    """What somebody else uploads meanwhile did not come out of the archive."""
    file = tmp_path / "good.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("june.txt", "The lighthouse was painted in June.")
    ann = await terminal.running.sign_in(terminal.name, PASSWORD)
    base = (await ann.post("/v1/rag/knowledge-bases", json={"name": "Papers"})).json()["id"]
    documents = f"/v1/rag/knowledge-bases/{base}/documents"
    terminal.work.clear()
    ingested = asyncio.create_task(terminal.ingest(file))
    async with asyncio.timeout(30):
        while not (await ann.get(documents)).json()["total"]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await ann.upload(f"/v1/rag/knowledge-bases/{base}/upload", "other.txt", b"Words of another.")
    terminal.work.set()
    _, report = await ingested
    assert (report["completed"], report["inside"], report["inside_completed"]) == (1, 1, 1)


def test_bars_on_a_narrow_screen() -> None:
    """Documents that take long have a bar each, with what is counted; long names are cut off."""
    written = io.StringIO()
    console = Console(force_terminal=True, width=80, file=written)
    name = "a [bold]very[/bold] long name of a table of orders.csv"
    with Bars(console) as bars:
        bars.uploaded(3, 3)
        long = IngestReading("a", name, 1_200, 6_667, "passages")
        bars.read(1, 3, 130, [long, IngestReading("b", "book.pdf", 3, 300, "pages")])
        bars.read(2, 3, 125, [long])
    uploading, reading, table = filter(None, screen(written.getvalue().replace("\n", "\r\n"), 80))
    assert "Uploading" in uploading and "3 of 3" in uploading
    assert "Reading, about 2:05 left" in reading and "2 of 3" in reading
    assert "  a [bold]very[/bold] long na…" in table and "1,200 of 6,667 passages" in table
    assert max(map(len, (uploading, reading, table))) <= 80


async def test_the_same_file_twice(terminal: Terminal, tmp_path: Path) -> None:
    """Two files of the same content both count as read, but as one document."""
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for file in files:
        file.write_text("The same words.")
    _, report = await terminal.ingest(*files)
    assert (report["uploaded"], report["skipped"], report["completed"]) == (1, 1, 2)
    assert report["documents"] == 1


async def test_sources(terminal: Terminal, tmp_path: Path) -> None:
    """The sources that the answer cites are listed, equal ones in one line."""
    passages = ["A hotel may cost up to 130 EUR a night.", "A hotel may cost more in a capital."]
    (tmp_path / "hotel.md").write_text(
        "\n\n".join(f"{one} " + "Other words follow. " * 60 for one in passages)
    )
    (tmp_path / "cat.txt").write_text("Cats sleep all day.")
    files = [str(tmp_path / "hotel.md"), str(tmp_path / "cat.txt")]
    assert (await terminal("ingest", *files, "--kb", "Papers")).exit_code == 0
    asked = await terminal("ask", "What may a hotel cost?", "--kb", "Papers")
    assert asked.exit_code == 0 and "[1]" in asked.stdout
    assert "cat.txt" not in asked.stderr and asked.stderr.count("hotel.md") == 1


async def test_for_a_program(terminal: Terminal, tmp_path: Path) -> None:
    """With `--json`, standard output is one JSON object: what became of the files, and the whole answer."""
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "hotel.md").write_text("A hotel may cost up to 130 EUR a night.\n")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    told = await terminal("ingest", str(folder), "--kb", "Papers", "--json")
    report = json.loads(told.stdout)
    assert told.exit_code == 1 and (report["uploaded"], report["completed"]) == (2, 1)
    ((name, why),) = report["problems"]
    assert name.endswith("broken.pdf") and "damaged" in why
    asked = await terminal("ask", "What may a hotel cost?", "--kb", "Papers", "--json")
    answer = json.loads(asked.stdout)
    assert "130 EUR" in answer["answer"] and answer["sources"][0]["source"] == "hotel.md"


async def test_the_page_of_a_source(terminal: Terminal, tmp_path: Path) -> None:
    """It is that of the sentence, also where short pages were read as one passage."""
    lines = ["Trains are booked in second class.", "A hotel may cost up to 130 EUR a night."]
    file = pdf(tmp_path / "rules.pdf", [[line] for line in lines])
    assert (await terminal("ingest", str(file), "--kb", "Papers")).exit_code == 0
    asked = await terminal("ask", "What may a hotel cost?", "--kb", "Papers")
    assert "[1] rules.pdf, page 2\n" in asked.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("", "--kb", "Papers"),
        (" \n", "--kb", "Papers"),
        ("Who?", "--kb", "Papers", "--pipeline", "Legal"),
    ],
)
def test_wrong_questions(cli: Cli, words: tuple[str, ...]) -> None:
    """A question that can't be asked is wrong usage, before any request is sent."""
    assert cli("ask", *words).exit_code == 2


async def test_a_piped_password(terminal: Terminal) -> None:
    """The password is read from a pipe without a warning; an empty one is wrong usage."""
    command = [sys.executable, "-P", "-m", "cli", "login", terminal.running.url, "-u", terminal.name]
    env = process_environment(terminal.env)

    def login(given: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, input=given, env=env, capture_output=True, text=True, start_new_session=True, check=False
        )

    done = await asyncio.to_thread(login, f"{PASSWORD}\n")
    assert done.returncode == 0 and done.stderr.startswith("✓ signed in"), done.stderr
    empty = await asyncio.to_thread(login, "")
    assert empty.returncode == 2, empty.stderr


async def test_a_wait_for_the_limit_is_shown(tmp_path: Path) -> None:
    """The bar shows how long it waits, and Ctrl-C ends the wait."""

    def answer(request: web.Request) -> web.Response:
        if request.method == "POST":
            return web.json_response({"detail": "Too many"}, status=429, headers={"Retry-After": "47"})
        items = [] if request.path.endswith("/documents") else [{"id": "kb", "name": "Papers"}]
        return web.json_response({"items": items, "total": len(items)})

    file = tmp_path / "a.txt"
    file.write_text("The tower is 31 metres high.")
    async with site_with(answer) as url:
        env = {"PLATFORM_API_URL": url, "PLATFORM_API_TOKEN": "plk_token"}
        code, seen = await asyncio.to_thread(
            shown_by,
            *("ingest", str(file), "--kb", "Papers"),
            env=env,
            replies=[("Rate limit: waiting 47 s", signal.SIGINT)],
        )
    assert code == 130, seen


async def test_a_session_that_ends_meanwhile(tmp_path: Path) -> None:
    """Once signed out, the command ends at once: no file would be accepted."""
    sent = 0

    def answer(request: web.Request) -> web.Response:
        nonlocal sent
        if request.method == "POST":
            sent += 1
            return web.json_response({"detail": "Sign in"}, status=401)
        items = [] if request.path.endswith("/documents") else [{"id": "kb", "name": "Papers"}]
        return web.json_response({"items": items, "total": len(items)})

    for number in range(40):
        (tmp_path / f"{number}.txt").write_text(f"The tower is {number} metres high.")
    async with site_with(answer) as url:
        env = {"PLATFORM_API_URL": url, "PLATFORM_API_TOKEN": "plk_token"}
        code, seen = await asyncio.to_thread(shown_by, "ingest", str(tmp_path), "--kb", "Papers", env=env)
    assert code == 1 and sent < 40, (sent, seen)
    assert seen.count("platformctl login") == 1, seen


async def test_a_restart(tmp_path: Path) -> None:
    """The command waits for a platform that restarts, during an upload and while documents are read."""
    asked: list[str] = []

    def answer(request: web.Request) -> web.Response:
        asked.append(request.method)
        if len(asked) in (2, 4):
            assert request.transport is not None
            request.transport.abort()
        if request.method == "POST":
            return web.json_response({"document_id": "d", "status": "processing"}, status=201)
        if request.path.endswith("/ingestion"):
            return web.json_response({"eta_seconds": None})
        found = {"document_id": "d", "sha256": "", "status": "completed", "parent_id": None, "notice": None}
        lists = {"documents": [found] if "POST" in asked and not request.query.get("status") else []}
        items = lists.get(request.path.rpartition("/")[2], [{"id": "kb", "name": "Papers"}])
        return web.json_response({"items": items, "total": len(items)})

    file = tmp_path / "a.txt"
    file.write_text("The tower is 31 metres high.")
    async with site_with(answer) as url:
        env = {"PLATFORM_API_URL": url, "PLATFORM_API_TOKEN": "plk_token"}
        code, seen = await asyncio.to_thread(shown_by, "ingest", str(file), "--kb", "Papers", env=env)
    assert (code, asked.count("POST")) == (0, 2), seen
