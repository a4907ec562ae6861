"""Extract the files inside a document (archives, attachments) to numbered files, within limits.

Runs in a parser process. Names are data and never paths; extracted files are checked by their content, like
uploads.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from builtin_plugins.documents.text.encoding import HEAD_BYTES, may_share, read_head, shared_code_page

LeftOut = Literal["damaged", "too_large", "used_up", "too_many", "link", "archive", "empty", "encrypted"]

LEFT_OUT: Final[dict[LeftOut, str]] = {
    "damaged": "damaged",
    "too_large": "too large",
    "used_up": "the limit for all files inside is used up",
    "too_many": "beyond the limit of files",
    "link": "a link",
    "archive": "an archive in an archive",
    "empty": "empty",
    "encrypted": "encrypted",
}


class ExtractedFile(NamedTuple):
    """A file from inside a document; `left_out` says why there is no content."""

    name: str
    content: bytes | Iterator[bytes]
    left_out: LeftOut | None = None


class Bounds(NamedTuple):
    """What may be extracted: how many files, bytes of one and bytes of all; and the kind that is not."""

    files: int
    file_bytes: int
    total_bytes: int


def extract_into(path: str, target: str, folder: str, bounds: list[int]) -> list[list[Any]]:
    """Write the files inside the document at `path` to `folder`, by the function `target`.

    Returns name, number of the file in the folder (None for what was left out), and why it was left out.
    """
    module, _, name = target.partition(":")
    function: Callable[[Path], Iterator[ExtractedFile]] = getattr(importlib.import_module(module), name)
    writer = _Writer(Path(folder), Bounds(*bounds))
    entries = [writer.take(extracted) for extracted in function(Path(path))]
    _read_alike([Path(folder, str(number)) for _, number, _ in entries if number is not None])
    return entries


def _read_alike(paths: list[Path]) -> None:
    """Turn short texts into UTF-8 whose code page only the longer ones beside them tell."""
    if (codec := shared_code_page(map(read_head, paths))) is None:
        return
    for path in paths:
        if path.stat().st_size < HEAD_BYTES and may_share(head := read_head(path), codec):
            path.write_bytes(head.decode(codec).encode())


class _Writer:
    def __init__(self, folder: Path, bounds: Bounds) -> None:
        self._folder = folder
        self._bounds = bounds
        self._left = bounds.total_bytes
        self._most = min(bounds.file_bytes, bounds.total_bytes)
        self._count = 0

    def take(self, extracted: ExtractedFile) -> list[Any]:
        """Take one file; its declared size is not trusted."""
        reason = extracted.left_out
        if reason is None and self._count >= self._bounds.files:
            reason = "too_many"
        if reason is None:
            reason = self._write(extracted.content)
        if reason is not None:
            return [extracted.name, None, reason]
        self._count += 1
        return [extracted.name, self._count, None]

    def _write(self, content: bytes | Iterator[bytes]) -> LeftOut | None:
        path = self._folder / str(self._count + 1)
        limit, size = min(self._bounds.file_bytes, self._left), 0
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            for piece in [content] if isinstance(content, bytes) else _until_damaged(content):
                if piece is None:
                    path.unlink()
                    return "damaged"
                size += len(piece)
                if size > limit:
                    self._left -= limit  # a bomb counts with the bytes that it tried to write
                    path.unlink()
                    return "used_up" if limit < self._most else "too_large"
                file.write(piece)
        self._left -= size
        if size == 0:
            path.unlink()
            return "empty"
        return None


def _until_damaged(pieces: Iterator[bytes]) -> Iterator[bytes | None]:
    try:
        yield from pieces
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a boundary: a damaged member raises whatever its library raises
        yield None
