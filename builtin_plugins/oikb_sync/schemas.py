"""Bodies and answers as the synchronizer has them."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from kernel.sdk import READABLE, example

MOST_ENTRIES = 100_000
LONGEST_PATH = 1024


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


Folder = Annotated[str, StringConstraints(max_length=LONGEST_PATH), AfterValidator(_nfc)]
FolderName = Annotated[str, StringConstraints(min_length=1, max_length=255), READABLE, AfterValidator(_nfc)]
FileName = Annotated[str, StringConstraints(min_length=1, max_length=255), AfterValidator(_nfc)]


class SourceFile(BaseModel):
    """A file at the source: its folder, empty at the top, and a checksum that changes with its content."""

    filename: FileName
    path: Folder = ""
    checksum: str = Field(min_length=1, max_length=255)
    size: int = Field(0, ge=0)

    @property
    def place(self) -> str:
        """The folder and the name."""
        return place_of(self.path, self.filename)


class SyncDiff(BaseModel):
    """All files of the sources of a knowledge base."""

    model_config = ConfigDict(
        extra="ignore",
        **example(manifest=[{"filename": "travel.md", "path": "policies", "checksum": "9f2c", "size": 120}]),
    )

    manifest: list[SourceFile] = Field(max_length=MOST_ENTRIES)


class StaleFile(BaseModel):
    """A file that its source no longer has."""

    file_id: str
    filename: str
    path: str


class ChangedFile(BaseModel):
    """A file whose checksum is another. It stays until its next version is read."""

    filename: str
    path: str
    stale_file_id: str


class NewFile(BaseModel):
    """A file that is not there yet."""

    filename: str
    path: str


class SyncDifference(BaseModel):
    """What is to be uploaded and removed. Folders need not be made; the id of one is its path."""

    added: list[NewFile]
    modified: list[ChangedFile]
    deleted: list[StaleFile]
    unmodified_count: int
    mkdir: list[str] = []
    rmdir: list[str] = []
    directory_map: dict[str, str]


class SyncCleanup(BaseModel):
    """What is to be removed."""

    model_config = ConfigDict(extra="ignore", **example(file_ids=["3f2c9d1e-7a54-4b0e-9c1d-2f6a8e5b7c90"]))

    file_ids: list[Annotated[str, StringConstraints(max_length=64)]] = Field(max_length=MOST_ENTRIES)
    dir_ids: list[Annotated[str, StringConstraints(max_length=LONGEST_PATH)]] = Field(
        [], max_length=MOST_ENTRIES, description="Ignored: a folder is there as long as it has files."
    )


class SyncRemoved(BaseModel):
    """How many files were removed."""

    removed: int


class FolderCreate(BaseModel):
    """A folder."""

    model_config = ConfigDict(extra="ignore", **example(name="policies"))

    name: FolderName
    parent_id: Folder | None = None


class FolderOut(BaseModel):
    """A folder; its id is its path."""

    id: str
    name: str


class SyncedUpload(BaseModel):
    """A file that was uploaded."""

    id: str
    filename: str


class SyncedBase(BaseModel):
    """A knowledge base."""

    id: str
    name: str
    description: str
    files: None = None


class SyncedEntry(BaseModel):
    """A file that the synchronizer has put into a knowledge base."""

    id: str
    filename: str
    meta: dict[str, Any]


class SyncedPage(BaseModel):
    """All of these files."""

    items: list[SyncedEntry]
    total: int


def _check_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("contains a NUL character; remove it")
    return text


Storable = AfterValidator(_check_nul)


class UploadNote(BaseModel):
    """What the synchronizer sends with a file."""

    knowledge_id: Annotated[str, Storable] = Field(min_length=1, max_length=64)
    file_hash: Annotated[str, Storable] = Field(min_length=1, max_length=255)
    directory_id: Annotated[Folder, Storable] | None = None


def place_of(folder: str, filename: str) -> str:
    """The folder and the name of a file as one path."""
    return f"{folder}/{filename}" if folder else filename
