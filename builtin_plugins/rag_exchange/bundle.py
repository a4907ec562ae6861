"""The file that carries a knowledge base: a zip archive.

`manifest.json` lists what is in it. For each document there is its original (by its hash), its passages as
JSON lines, and their vectors as 32-bit numbers. Nothing in an uploaded file is trusted unchecked: names come
only from the manifest's ids and hashes, and every size has a limit.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from builtin_plugins.documents.api import BOUNDED, MAX_SIZE
from builtin_plugins.rag.api import FieldPut, KnowledgeBaseSettings, RuleIn
from kernel.sdk import Unprocessable

if TYPE_CHECKING:
    import numpy as np

MANIFEST = "manifest.json"
MOST_DOCUMENTS = 200_000
_LARGEST_MANIFEST = 256 << 20
_LARGEST_LINE = 4 << 20
_MOST_GROWTH = 200
"""How many times larger than its compressed size a member may be; text and numbers compress far less."""
_MOST_MEMBERS = 3 * MOST_DOCUMENTS + 1
_LARGEST_CONTENTS = 160 * _MOST_MEMBERS
_ENTRY = b"PK\x01\x02"
"""The signature of each entry in an archive's table of contents."""
_MOST_VALUES = 2_000_000
_VALUES_OF_MEMBER = 64
"""The manifest's values take fifty times their size in memory. A document has 3 members and 14 values."""
_CLOSE = 0.01
# zipfile raises NotImplementedError for a compression that it does not know, RuntimeError for a password.
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError)

Id = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
# What every database can store, so that a job never gets a row that can't be written.
_Natural = Annotated[int, Field(ge=0, le=2**31 - 1)]
_Section = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00]+$")]
_Time = Annotated[
    AwareDatetime, Field(ge=datetime(1970, 1, 1, tzinfo=UTC), lt=datetime(9999, 1, 1, tzinfo=UTC))
]
FileName = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f/\\]+$")]


_Origin = Literal["hand", "source", "file", "proposal"]
_Text = Annotated[str, StringConstraints(max_length=512, pattern=r"^[^\x00]*$")]
_Values = Annotated[
    dict[Annotated[str, Field(max_length=64)], Annotated[list[_Text], Field(max_length=100)]],
    Field(max_length=100),
]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Base(KnowledgeBaseSettings, _Part):
    """Settings of the knowledge base."""

    graph: bool = False


class BundledDocument(_Part):
    """A document whose passages are in the file."""

    id: Id
    filename: FileName
    content_type: Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f]+$")]
    size_bytes: Annotated[int, Field(ge=1)]
    sha256: Digest
    chunk_count: Annotated[_Natural, Field(ge=1)]
    page_count: _Natural | None = None
    notice: Annotated[str, StringConstraints(max_length=1000, pattern=r"^[^\x00]*$")] | None = None
    parent_id: Id | None = None
    uploaded_at: _Time
    has_tree: bool = False
    identity: Annotated[str, Field(max_length=512)] | None = None
    metadata: dict[_Origin, _Values] = {}


class BundleManifest(_Part):
    """What is in the file. `engine` made the vectors, which have `dimension` numbers each."""

    format: Literal["platform.knowledge_base"] = "platform.knowledge_base"
    version: Literal[1] = 1
    exported_at: datetime
    made_by: Annotated[str, StringConstraints(max_length=64)]
    knowledge_base: Base
    engine: Annotated[str, StringConstraints(max_length=255)] | None
    dimension: Annotated[int, Field(ge=0, le=65_536)]
    documents: Annotated[list[BundledDocument], Field(max_length=MOST_DOCUMENTS)]
    fields: Annotated[dict[Annotated[str, Field(max_length=64)], FieldPut], Field(max_length=64)] = {}
    rules: Annotated[list[RuleIn], Field(max_length=100)] = []
    plugins: dict[str, Any] = {}


class BundledPassage(_Part):
    """A passage, and where it is in its document."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    text: Annotated[str, StringConstraints(min_length=1, pattern=r"^[^\x00]+$")]
    page: _Natural | None
    char_start: _Natural
    char_end: _Natural
    pages: Annotated[list[tuple[_Natural, _Natural | None]], Field(max_length=MAX_SIZE)] = []
    sections: Annotated[list[tuple[_Natural, _Section]], Field(max_length=MAX_SIZE)] = []
    context: Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00]*$")] = ""


class BundleBroken(Unprocessable):
    """The file is not an exported knowledge base, or it is damaged."""


def broken(why: str) -> BundleBroken:
    """The refusal of a file, for its sender."""
    message = f"not an exported knowledge base, or damaged: {why}"
    return BundleBroken([{"type": "value_error", "loc": ["body", "file"], "msg": message, "input": None}])


def original_of(document: BundledDocument) -> str:
    """The name of its original in the file."""
    return f"originals/{document.sha256}"


def passages_of(document: BundledDocument) -> str:
    """The name of its passages in the file."""
    return f"passages/{document.id}.jsonl"


def vectors_of(document: BundledDocument) -> str:
    """The name of its vectors in the file."""
    return f"vectors/{document.id}.f32"


class ZipBuffer(io.RawIOBase):
    """A buffer of what was written and not yet taken; `zipfile` writes to it without seeking."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        """Everything written since the last call."""
        data, self._pieces = b"".join(self._pieces), []
        return data


class _Opened(io.BufferedReader):
    """A file as `zipfile` opens it: it makes an object for every entry of the table of contents at once."""

    checked = False

    def read(self, size: int | None = -1, /) -> bytes:
        if not self.checked and size is not None and size > _LARGEST_CONTENTS:
            raise zipfile.BadZipFile
        data = super().read(size)
        if not self.checked and data.count(_ENTRY) > _MOST_MEMBERS:
            raise zipfile.BadZipFile
        return data


class BundleReader:
    """An uploaded file. All calls block, and raise BundleBroken for invalid content."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        """Reads the table of contents and the manifest; `most_bytes` limits the unpacked total."""
        self._file = _Opened(io.FileIO(path))
        try:
            self._zip = self._contents()
            self._check_sizes(most_bytes)
            self.manifest = self._read_manifest()
            self._check_contents()
        except BaseException:  # close the file, whatever is wrong with it
            self._file.close()
            raise

    def __enter__(self) -> BundleReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()
        self._file.close()

    def original(self, document: BundledDocument) -> Iterator[bytes]:
        """The original's bytes, in pieces."""
        with self._open(original_of(document)) as file:
            while piece := _guarded(lambda: file.read(1 << 20)):
                yield piece

    def batches(
        self, document: BundledDocument, size: int
    ) -> Iterator[tuple[list[BundledPassage], np.ndarray]]:
        """All passages with their vectors, in order; at most `size` at a time."""
        left = document.chunk_count
        with self._open(passages_of(document)) as lines, self._open(vectors_of(document)) as numbers:
            while left:
                count = min(left, size)
                passages = [_read_passage(lines, document) for _ in range(count)]
                yield passages, self._read_vectors(numbers, document, count)
                left -= count
            if _guarded(lambda: lines.read(1)) or _guarded(lambda: numbers.read(1)):
                raise broken(f"{document.filename} has more passages than its {MANIFEST} says")

    def _read_vectors(self, numbers: IO[bytes], document: BundledDocument, count: int) -> np.ndarray:
        import numpy as np

        size = count * self.manifest.dimension * 4
        raw = _guarded(lambda: numbers.read(size))
        if len(raw) != size:
            raise broken(f"vectors of {document.filename} are missing")
        vectors = np.frombuffer(raw, "<f4").reshape(count, self.manifest.dimension)
        if not np.isfinite(vectors).all() or (np.abs(np.linalg.norm(vectors, axis=1) - 1) > _CLOSE).any():
            raise broken(f"vectors of {document.filename} are not of unit length")
        return vectors

    def _open(self, name: str) -> IO[bytes]:
        try:
            return self._zip.open(name)
        except (KeyError, *_BROKEN):
            raise broken(f"{name} can't be read") from None

    def _contents(self) -> zipfile.ZipFile:
        try:
            opened = zipfile.ZipFile(self._file)
        except _BROKEN:
            raise broken("it is not a zip archive, or has too many files") from None
        self._file.checked = True
        return opened

    def _check_sizes(self, most_bytes: int) -> None:
        total = 0
        for member in self._zip.infolist():
            total += member.file_size
            if member.file_size > _MOST_GROWTH * max(member.compress_size, 1) + 1_000_000:
                raise broken("it grows too large")
            if member.compress_type not in BOUNDED:
                raise broken("it uses a compression method other than deflate")
        if total > most_bytes:
            raise broken(f"it unpacks to more than {most_bytes >> 20} MB")

    def _read_manifest(self) -> BundleManifest:
        try:
            info = self._zip.getinfo(MANIFEST)
        except KeyError:
            raise broken(f"it has no {MANIFEST}") from None
        if info.file_size > _LARGEST_MANIFEST:
            raise broken(f"its {MANIFEST} is too large")
        with self._open(MANIFEST) as file:
            content = _guarded(lambda: file.read(info.file_size))  # without a size: all at once
        values = content.count(b",") + content.count(b"[") + content.count(b"{")
        if values > _MOST_VALUES + _VALUES_OF_MEMBER * len(self._zip.filelist):
            raise broken(f"its {MANIFEST} has too many values")
        try:
            return BundleManifest.model_validate_json(content)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise broken(f"{MANIFEST}: {where}: {first['msg']}") from None

    def _check_contents(self) -> None:
        """Check that each document has its parts and that no name occurs twice."""
        names = self._zip.namelist()
        if len(names) != len(set(names)):
            raise broken("a name is in it twice")
        documents, present = self.manifest.documents, set(names)
        if len({document.id for document in documents}) != len(documents):
            raise broken("a document is in it twice")
        if len({(document.sha256, document.identity) for document in documents}) != len(documents):
            raise broken("an original is in it twice under one path")
        for document in documents:
            for name in (original_of(document), passages_of(document), vectors_of(document)):
                if name not in present:
                    raise broken(f"{name} is missing")
        if documents and (self.manifest.engine is None or self.manifest.dimension == 0):
            raise broken("it does not say which engine made its vectors")


def _read_passage(lines: IO[bytes], document: BundledDocument) -> BundledPassage:
    line = _guarded(lambda: lines.readline(_LARGEST_LINE))
    if not line.endswith(b"\n"):
        raise broken(f"a passage of {document.filename} is missing or too long")
    try:
        return BundledPassage.model_validate(json.loads(line))
    except (ValueError, RecursionError):
        raise broken(f"a passage of {document.filename} can't be read") from None


def _guarded(read: Any) -> Any:
    try:
        return read()
    except _BROKEN:
        raise broken("its content is damaged") from None
