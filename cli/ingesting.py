"""What `platformctl ingest` does: look what is there, upload the rest, follow it to its end."""

from __future__ import annotations

import asyncio
import hashlib
import os
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
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
# Archives and messages: the files inside become documents of their own.
_HOLDING_FILES = ("application/zip", "message/rfc822", "application/vnd.ms-outlook")
_UNSHOWN = ("Cc", "Cs", "Zl", "Zp")


@dataclass
class Report:
    """How it went; `problems` and `notices` are names with reasons.

    `documents` is less than `completed` where files are the same. `inside` are the documents that came out of
    the files.
    """

    files: int = 0
    uploaded: int = 0
    skipped: int = 0
    completed: int = 0
    documents: int = 0
    inside: int = 0
    inside_completed: int = 0
    problems: list[tuple[str, str]] = field(default_factory=list)
    notices: list[tuple[str, str]] = field(default_factory=list)


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
        # When the documents that were there before were uploaded, or last tried again.
        self._before: dict[str, str] = {}
        # Files of the same content go one after another: the second one is there already.
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        # Names of the files of this run by the ids of their documents.
        self._names: defaultdict[str, list[str]] = defaultdict(list)
        # Those among them that came out of other documents.
        self._came: set[str] = set()

    async def run(self, *, wait: bool) -> Report:
        async for document in pages(self._client, f"{self._path}/documents"):
            self._known[document["sha256"]] = document
            self._before[document["document_id"]] = document["uploaded_at"]
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
                self._report.problems.append((_shown(file), error.strerror or type(error).__name__))
            except CommandFailed as error:
                self._report.problems.append((_shown(file), error.text.partition(": ")[2] or error.text))
            self._progress.advance(task)

    async def _one(self, file: Path) -> None:
        digest = await asyncio.to_thread(_digest, file)
        async with self._turns[digest]:
            known = self._known.get(digest)
            if known is not None and known["status"] != "failed":
                self._report.skipped += 1
            else:
                known = self._known[digest] = await self._send(file)
                self._report.uploaded += 1
            self._names[known["document_id"]].append(_shown(file))

    async def _send(self, file: Path) -> dict[str, Any]:
        from kernel.http.names import clean_name

        def form() -> aiohttp.FormData:
            """Reopened for each attempt, because sending closes it. aiohttp must not see the odd name."""
            made = aiohttp.FormData(quote_fields=False)
            content = os.fdopen(os.open(file, os.O_RDONLY), "rb")
            made.add_field("file", content, filename=clean_name(file.name))
            return made

        return dict(await self._client.call("POST", f"{self._path}/upload", form=form))

    async def _follow(self) -> None:
        """Until the documents are read, and those that came out of them; says what became of them."""
        task = self._progress.add_task("Reading", total=0)
        reading: Collection[str] = set(self._names)
        while reading:
            await self._until_read(reading, task)
            found = [one async for one in pages(self._client, f"{self._path}/documents")]
            ended = {one["document_id"]: one for one in found if one["document_id"] in reading}
            for document in ended.values():
                self._tell(document)
            reading = self._inside(found) if any(map(_holds_files, ended.values())) else set()

    async def _until_read(self, documents: Collection[str], task: Any) -> None:
        while True:
            processing = pages(self._client, f"{self._path}/documents", status="processing")
            going = {one["document_id"] async for one in processing} & set(documents)
            state = await self._client.get(f"{self._path}/ingestion")
            done = len(documents) - len(going)
            self._progress.update(task, completed=done, total=len(documents), description=_described(state))
            if not going:
                return
            await asyncio.sleep(_LOOK_EVERY)

    def _inside(self, found: Sequence[dict[str, Any]]) -> set[str]:
        """Documents that were added or tried again in the meantime and are not files of this run.

        The platform does not say what a document came out of: somebody else's upload looks the same.
        """
        came = {
            one["document_id"]: one["filename"]
            for one in found
            if one["document_id"] not in self._names
            and self._before.get(one["document_id"]) != one["uploaded_at"]
        }
        for document, name in came.items():
            self._names[document].append(f"{name} (from inside another file)")
        self._came |= came.keys()
        self._report.inside = len(self._came)
        return set(came)

    def _tell(self, document: dict[str, Any]) -> None:
        names = self._names[document["document_id"]]
        if document["status"] == "failed":
            self._report.problems += [(name, document["error"]) for name in names]
        elif document["document_id"] in self._came:
            self._report.inside_completed += 1
        else:
            self._report.completed += len(names)
            self._report.documents += 1
        if document["notice"]:
            self._report.notices += [(name, document["notice"]) for name in names]


def _holds_files(document: dict[str, Any]) -> bool:
    return document["content_type"] in _HOLDING_FILES


def _shown(file: Path) -> str:
    """The path in one line; what can't be shown is written as in Python."""
    return "".join(map(_shown_character, str(file)))


def _shown_character(character: str) -> str:
    if unicodedata.category(character) not in _UNSHOWN:
        return character
    if "\udc80" <= character <= "\udcff":  # a byte of a name that is not UTF-8
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")


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
