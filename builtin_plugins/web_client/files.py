"""The client's files: read once, served only by name; those of the first view are joined ahead."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernel.sdk import ResourceKey

from .joining import join

FOLDER: Final = Path(__file__).parent / "static"
INDEX: Final = "index.html"
_TYPES: Final = {".js": "text/javascript", ".mjs": "text/javascript", ".svg": "image/svg+xml"}
_TEXTS: Final = ("text/", "application/json", "image/svg")
_DIGEST_LENGTH: Final = 16
# Loaded by visitors first, by people who sign in next, and the view that they then see.
ENTRIES: Final = ("main.js", "parts/frame.js", "pages/ask/page.js")
_FIRST: Final = (*ENTRIES, "styles.css", "icon.svg")


@dataclass(frozen=True)
class StaticFile:
    """A file as it is sent."""

    content: bytes
    media_type: str

    @property
    def is_text(self) -> bool:
        """Whether compression makes it smaller."""
        return self.media_type.startswith(_TEXTS)


class Files:
    """All files by their paths below `static`. `digest` changes with any of them; addresses contain it."""

    def __init__(self, files: Mapping[str, StaticFile]) -> None:
        self._files = files
        self._compressed: dict[str, bytes] = {}
        self.digest = _digest(files)

    @classmethod
    def read(cls, folder: Path = FOLDER) -> Files:
        """Read the folder; blocks."""
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        files = cls(_joined({path.relative_to(folder).as_posix(): _file(path) for path in paths}))
        files._compressed = {name: _compress(files._files[name].content) for name in _FIRST}
        return files

    def find(self, name: str) -> StaticFile | None:
        """A file; None for an unknown name."""
        return self._files.get(name)

    def names(self, folder: str) -> list[str]:
        """The files of a folder and below."""
        return [name for name in self._files if name.startswith(folder)]

    def languages(self) -> list[str]:
        """The codes of the languages with a file of texts, such as "de" or "pt-BR"."""
        return [Path(name).stem for name in self.names("languages/")]

    async def compressed(self, name: str) -> bytes:
        """Its content in gzip, compressed once, in a thread."""
        if name not in self._compressed:
            self._compressed[name] = await asyncio.to_thread(_compress, self._files[name].content)
        return self._compressed[name]


FILES: ResourceKey[Files] = ResourceKey("web_client_files")


def _file(path: Path) -> StaticFile:
    media_type = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return StaticFile(path.read_bytes(), media_type)


def _joined(files: dict[str, StaticFile]) -> dict[str, StaticFile]:
    """The files, with one bundled module for each entry."""
    modules = {name: file.content.decode() for name, file in files.items() if _may_be_joined(name)}
    joined = join(modules, ENTRIES)
    others = {name: file for name, file in files.items() if name not in modules}
    return others | {name: StaticFile(text.encode(), _TYPES[".js"]) for name, text in joined.items()}


def _may_be_joined(name: str) -> bool:
    """Whether it is our module or a library that ours need; PDF.js is excluded as it is large."""
    return name.endswith(".js") and not name.startswith(("vendor/pdf", "languages/"))


def _compress(content: bytes) -> bytes:
    return gzip.compress(content, compresslevel=9, mtime=0)


def _digest(files: Mapping[str, StaticFile]) -> str:
    digest = hashlib.sha256()
    for name, file in files.items():
        digest.update(f"{name}\0{len(file.content)}\0".encode())
        digest.update(file.content)
    return digest.hexdigest()[:_DIGEST_LENGTH]
