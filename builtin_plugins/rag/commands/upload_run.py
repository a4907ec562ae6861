"""The work of `platformctl ingest`: find what already exists, upload the rest, and follow it to the end."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from builtin_plugins.rag.commands.ingest_bars import Bars, IngestReading
from builtin_plugins.rag.models import INGESTING
from cli.client import Client, SessionLost, signed_in
from cli.failures import CommandFailed, ExitCode, Missing
from kernel.sdk.http import clean_name

_AT_ONCE = 4
_LONGEST_PATH = 500
"""Characters; a file with a longer path is uploaded without one."""
_LOOK_EVERY = 1.0
_PAGE = 500
_EDITED_AT_ONCE = 1_000
_BASES = "/v1/rag/knowledge-bases"
_UNSHOWN = ("Cc", "Cs", "Zl", "Zp")
# They turn the direction of writing: "invoice<turn>fdp.exe" would be shown as "invoiceexe.pdf".
_TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass
class UploadReport:
    """The outcome; `problems` and `notices` are names with reasons. `replaced` of the uploaded files are new
    versions of documents.

    `documents` is less than `completed` if files are identical. `inside` counts documents extracted from the
    files.
    """

    files: int = 0
    uploaded: int = 0
    replaced: int = 0
    skipped: int = 0
    completed: int = 0
    documents: int = 0
    inside: int = 0
    inside_completed: int = 0
    problems: list[tuple[str, str]] = field(default_factory=list)
    notices: list[tuple[str, str]] = field(default_factory=list)


def read_values(options: Sequence[str]) -> dict[str, str | list[str]]:
    """Values written as FIELD=VALUE; a field that is named twice has a list. Raises CommandFailed."""
    values_by_field: dict[str, list[str]] = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not (name.strip() and equals and value.strip()):
            raise CommandFailed(
                f"'{option}' is not FIELD=VALUE", "Write --set year=2026.", code=ExitCode.USAGE
            )
        values_by_field.setdefault(name.strip(), []).append(value.strip())
    return {name: some[0] if len(some) == 1 else some for name, some in values_by_field.items()}


async def ingest_all(
    paths: Sequence[Path], base: str, values: Mapping[str, Any], *, hidden: bool, wait: bool
) -> UploadReport:
    """Upload files that don't exist yet, and give all of them these values. Raises CommandFailed."""
    from cli import console

    files = await asyncio.to_thread(lambda: dict(_files(paths, hidden)))
    if not files:
        raise Missing("there are no files to upload")
    async with signed_in() as client:
        base_id = await find_base(client, base, create=True)
        with Bars(console.err()) as bars:
            client.tell_wait = bars.waits
            return await _Upload(client, base_id, files, values, bars).run(wait=wait)


def _files(paths: Sequence[Path], hidden: bool) -> Iterator[tuple[Path, str]]:
    """The files, each with its path in the knowledge base: below the name of the folder that was given, or
    that it is in. Those in folders come in the order of their names. Links to folders are not followed.
    """
    for path in paths:
        if path.is_file():
            yield path, _path_below(path.parent, path)
            continue
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if hidden or not name.startswith("."))
            for name in sorted(names):
                file = Path(folder, name)
                if (hidden or not name.startswith(".")) and file.is_file():
                    yield file, _path_below(path, file)


def _path_below(folder: Path, file: Path) -> str:
    return "/".join(_plain(one) for one in (folder.resolve().name, *file.relative_to(folder).parts) if one)


async def find_base(client: Client, name_or_id: str, *, create: bool = False) -> str:
    """The id of a knowledge base by name or id. Raises CommandFailed."""
    bases = [one async for one in pages(client, _BASES)]
    matches = [one for one in bases if name_or_id in (one["id"], one["name"])]
    if len(matches) > 1:
        ids = ", ".join(one["id"] for one in matches)
        raise CommandFailed(
            f"{len(matches)} knowledge bases are called '{name_or_id}'", f"Name one by its id: {ids}."
        )
    if matches:
        return str(matches[0]["id"])
    if not create:
        names = ", ".join(sorted(one["name"] for one in bases)) or "none"
        raise Missing(f"no knowledge base is called '{name_or_id}'", f"Available: {names}.")
    base = await client.call("POST", _BASES, json={"name": name_or_id})
    return str(base["id"])


async def pages(client: Client, path: str, **query: Any) -> Any:
    """The items of all pages of a list."""
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

    def __init__(
        self,
        client: Client,
        base: str,
        files: Mapping[Path, str],
        values: Mapping[str, Any],
        bars: Bars,
    ) -> None:
        self._client = client
        self._path = f"{_BASES}/{base}"
        self._files = files
        self._values = values
        # Documents that were there already, and get the values afterwards.
        self._there: list[str] = []
        self._bars = bars
        self._ended = 0
        self._report = UploadReport(files=len(files))
        self._by_digest: dict[str, dict[str, Any]] = {}
        self._at_path: dict[str, dict[str, Any]] = {}
        # Files with the same content go one after another: the second then already exists.
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        # The names of this run's files, by document id.
        self._names: defaultdict[str, list[str]] = defaultdict(list)
        # Those that were extracted from other documents.
        self._came: set[str] = set()

    async def run(self, *, wait: bool) -> UploadReport:
        async for document in pages(self._client, f"{self._path}/documents"):
            self._by_digest[document["sha256"]] = self._at_path[document.get("path") or ""] = document
        self._bars.uploaded(0, len(self._files))
        left = iter(self._files)
        await asyncio.gather(*(self._some(left) for _ in range(_AT_ONCE)))
        await self._describe()
        if wait and self._names:
            await self._follow()
        return self._report

    async def _describe(self) -> None:
        """Give the documents that were there already the values."""
        for start in range(0, len(self._there) if self._values else 0, _EDITED_AT_ONCE):
            some = self._there[start : start + _EDITED_AT_ONCE]
            body = {"document_ids": some, "set": self._values}
            await self._client.call("POST", f"{self._path}/documents/metadata", json=body)

    async def _some(self, left: Iterator[Path]) -> None:
        for file in left:
            try:
                await self._upload(file)
            except OSError as error:
                if isinstance(error, aiohttp.ClientConnectionError):
                    raise
                self._report.problems.append((_one_line(file), error.strerror or type(error).__name__))
            except SessionLost:
                raise
            except CommandFailed as error:
                why = error.text.partition(": ")[2] or error.text
                self._report.problems.append((_one_line(file), why.removeprefix("file: ")))
            self._ended += 1
            self._bars.uploaded(self._ended, len(self._files))

    async def _upload(self, file: Path) -> None:
        digest = await asyncio.to_thread(_digest, file)
        async with self._turns[digest]:
            document = self._same(file, digest)
            if document is None:
                document = await self._send(file)
                self._count(digest, document)
                self._by_digest[digest] = self._at_path[self._files[file]] = document
            else:
                self._report.skipped += 1
                self._there.append(document["document_id"])
            self._names[document["document_id"]].append(_one_line(file))

    def _same(self, file: Path, digest: str) -> dict[str, Any] | None:
        """The document that has a file's content already, at its path, or at any if there is none at its own.

        One that was uploaded without a path is sent once more, so that a later version replaces it.
        """
        own, elsewhere = self._at_path.get(self._files[file]), self._by_digest.get(digest)
        document = elsewhere if own is None else own
        if document is None or document["status"] == "failed" or document["sha256"] != digest:
            return None
        unnamed = not any(document.get(one) for one in ("path", "external_id", "parent_id"))
        return None if unnamed and document.get("filename") == clean_name(file.name) else document

    def _count(self, digest: str, sent: dict[str, Any]) -> None:
        before = self._by_digest.get(digest, {"status": "failed"})
        is_new = before["status"] == "failed" or before["document_id"] != sent["document_id"]
        self._report.uploaded += is_new
        self._report.skipped += not is_new
        self._report.replaced += is_new and sent.get("version", 1) > 1

    async def _send(self, file: Path) -> dict[str, Any]:
        def form() -> aiohttp.FormData:
            """A form for each attempt, as sending closes the file. aiohttp can't send odd names."""
            data = aiohttp.FormData(quote_fields=False)
            if len(self._files[file]) <= _LONGEST_PATH:
                data.add_field("path", self._files[file])
            if self._values:
                data.add_field("metadata", json.dumps(self._values))
            content = os.fdopen(os.open(file, os.O_RDONLY), "rb")
            data.add_field("file", content, filename=clean_name(file.name))
            return data

        return dict(await self._client.call("POST", f"{self._path}/upload", form=form))

    async def _follow(self) -> None:
        """Wait until the documents, and those extracted from them, are read; record what happened to them."""
        reading: Collection[str] = set(self._names)
        while reading:
            await self._until_read(reading)
            documents = [one async for one in pages(self._client, f"{self._path}/documents")]
            for document in documents:
                if document["document_id"] in reading:
                    self._tell(document)
            reading = self._inside(documents, reading)

    async def _until_read(self, documents: Collection[str]) -> None:
        while True:
            processing = pages(self._client, f"{self._path}/documents", status="processing")
            names = {one["document_id"]: one["filename"] async for one in processing}
            going = {key: name for key, name in names.items() if key in documents}
            state = await self._client.get(f"{self._path}/ingestion")
            done, readings = len(documents) - len(going), await self._readings(going)
            self._bars.read(done, len(documents), state["eta_seconds"], readings)
            if not going:
                return
            await asyncio.sleep(_LOOK_EVERY)

    async def _readings(self, going: Mapping[str, str]) -> list[IngestReading]:
        """The progress of documents being read, the longest first; empty unless it is shown."""
        if not going or not self._bars.are_seen:
            return []
        running = pages(self._client, "/v1/jobs", status="running", kind=INGESTING)
        pairs = [(job["subject"], job["progress"]) async for job in running if job["subject"] in going]
        readings = [
            IngestReading(key, _plain(going[key]), one["done"], one["total"], one["unit"])
            for key, one in pairs
            if one["total"]
        ]
        return sorted(readings, key=lambda one: (one.done - one.total, one.document_id))

    def _inside(self, documents: Sequence[dict[str, Any]], parents: Collection[str]) -> set[str]:
        """Documents that were extracted from these and are not files of this run."""
        came = {
            one["document_id"]: f"{one['filename']} (inside {self._names[one['parent_id']][0]})"
            for one in documents
            if one["parent_id"] in parents and one["document_id"] not in self._names
        }
        for document, name in came.items():
            self._names[document].append(name)
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


def _one_line(file: Path) -> str:
    """The path in one line."""
    return _plain(str(file))


def _plain(text: str) -> str:
    """A text in one line, with unprintable characters escaped as in Python."""
    return "".join(map(_shown_character, text))


def _shown_character(character: str) -> str:
    if unicodedata.category(character) not in _UNSHOWN and character not in _TURNS:
        return character
    if "\udc80" <= character <= "\udcff":  # a byte of a name that isn't UTF-8
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
