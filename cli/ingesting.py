"""What `platformctl ingest` does: look what is there, upload the rest, follow it to its end."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

from cli.client import Client, signed_in
from cli.failures import CommandFailed, Missing

if TYPE_CHECKING:
    from rich.progress import Progress

_AT_ONCE = 4
_LOOK_EVERY = 1.0
_PAGE = 500
_BASES = "/v1/rag/knowledge-bases"


@dataclass
class Report:
    """How it went; `problems` are names with reasons."""

    files: int = 0
    uploaded: int = 0
    skipped: int = 0
    completed: int = 0
    problems: list[tuple[str, str]] = field(default_factory=list)


async def ingest_all(paths: Sequence[Path], base: str, *, hidden: bool, wait: bool) -> Report:
    """Upload what is not there yet. Raises CommandFailed."""
    files = await asyncio.to_thread(lambda: list(dict.fromkeys(_files(paths, hidden))))
    if not files:
        raise Missing("there are no files to upload")
    async with signed_in() as client:
        base_id = await find_base(client, base, create=True)
        with _progress() as progress:
            return await _Upload(client, base_id, files, progress).run(wait=wait)


def _files(paths: Sequence[Path], hidden: bool) -> Iterator[Path]:
    """The files, those of folders in the order of their names; links are not followed into folders."""
    for path in paths:
        if path.is_file():
            yield path
            continue
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if hidden or not name.startswith("."))
            for name in sorted(names):
                found = Path(folder, name)
                if (hidden or not name.startswith(".")) and found.is_file():
                    yield found


async def find_base(client: Client, wanted: str, *, create: bool = False) -> str:
    """The id of a knowledge base by name or id. Raises CommandFailed."""
    known = [one async for one in pages(client, _BASES)]
    found = [one for one in known if wanted in (one["id"], one["name"])]
    if len(found) > 1:
        ids = ", ".join(one["id"] for one in found)
        raise CommandFailed(
            f"{len(found)} knowledge bases are called '{wanted}'", f"Name one by its id: {ids}."
        )
    if found:
        return str(found[0]["id"])
    if not create:
        names = ", ".join(sorted(one["name"] for one in known)) or "none"
        raise Missing(f"no knowledge base is called '{wanted}'", f"There are: {names}.")
    made = await client.call("POST", _BASES, json={"name": wanted})
    return str(made["id"])


async def pages(client: Client, path: str, **query: Any) -> Any:
    """Every item of a list."""
    offset = 0
    while True:
        page = await client.get(path, limit=_PAGE, offset=offset, **query)
        for item in page["items"]:
            yield item
        offset += len(page["items"])
        if not page["items"] or offset >= page["total"]:
            return


class _Upload:
    """One run over the files."""

    def __init__(self, client: Client, base: str, files: Sequence[Path], progress: Progress) -> None:
        self._client = client
        self._path = f"{_BASES}/{base}"
        self._files = files
        self._progress = progress
        self._report = Report(files=len(files))
        self._known: dict[str, dict[str, Any]] = {}
        # Names of the files of this run by the ids of their documents.
        self._names: dict[str, str] = {}

    async def run(self, *, wait: bool) -> Report:
        async for document in pages(self._client, f"{self._path}/documents"):
            self._known[document["sha256"]] = document
        uploading = self._progress.add_task("Uploading", total=len(self._files))
        left = iter(self._files)
        await asyncio.gather(*(self._some(left, uploading) for _ in range(_AT_ONCE)))
        if wait and self._names:
            await self._follow()
        return self._report

    async def _some(self, left: Iterator[Path], task: Any) -> None:
        for file in left:
            try:
                await self._one(file)
            except OSError as error:
                if isinstance(error, aiohttp.ClientConnectionError):
                    raise
                self._report.problems.append((str(file), error.strerror or type(error).__name__))
            except CommandFailed as error:
                self._report.problems.append((str(file), error.text.partition(": ")[2] or error.text))
            self._progress.advance(task)

    async def _one(self, file: Path) -> None:
        digest = await asyncio.to_thread(_digest, file)
        known = self._known.get(digest)
        if known is not None and known["status"] != "failed":
            self._report.skipped += 1
            self._names[known["document_id"]] = str(file)
            return

        def form() -> aiohttp.FormData:
            """Reopened for each attempt, because sending closes it."""
            made = aiohttp.FormData(quote_fields=False)
            made.add_field("file", file.open("rb"), filename=file.name)
            return made

        document = await self._client.call("POST", f"{self._path}/upload", form=form)
        self._known[digest] = document
        self._names[document["document_id"]] = str(file)
        self._report.uploaded += 1

    async def _follow(self) -> None:
        """Until none of the documents is being read; says why those failed that did."""
        reading = self._progress.add_task("Reading", total=len(self._names))
        while True:
            going = {one["document_id"] async for one in self._documents("processing")} & self._names.keys()
            state = await self._client.get(f"{self._path}/ingestion")
            self._progress.update(
                reading, completed=len(self._names) - len(going), description=_described(state)
            )
            if not going:
                break
            await asyncio.sleep(_LOOK_EVERY)
        async for document in self._documents("failed"):
            if document["document_id"] in self._names:
                name = self._names.pop(document["document_id"])
                self._report.problems.append((name, document["error"]))
        self._report.completed = len(self._names)

    def _documents(self, status: str) -> Any:
        return pages(self._client, f"{self._path}/documents", status=status)


def _described(state: dict[str, Any]) -> str:
    if state["eta_seconds"]:
        minutes, seconds = divmod(state["eta_seconds"], 60)
        return f"Reading, about {minutes}:{seconds:02} left"
    return "Reading"


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _progress() -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from cli import console

    screen = console.err()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=screen, disable=not screen.is_terminal)
