"""Stored files as responses: whole, in part, or not at all if the client already has them."""

from __future__ import annotations

import asyncio
import math
import mimetypes
import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import BinaryIO, Final

from aiohttp import ETag, hdrs, web

from kernel.errors import NotFound, PreconditionFailed, RangeNotSatisfiable

_CHUNK = 256 * 1024
WHOLE: Final = slice(None, None, 1)
_ONE_RANGE: Final = re.compile(r"bytes=[ \t,]*([0-9]*)-([0-9]*)[ \t,]*", re.ASCII | re.IGNORECASE)
_MOST_DIGITS: Final = 18  # no file is that large


@dataclass(frozen=True)
class Validators:
    """Validators of a file's version (RFC 9110, 8.8): its hash in hex, and the time since which it exists.

    A stored file may be shared by owners who don't know of each other: its own time would tell one when
    another stored it.
    """

    sha256: str
    modified: datetime


@dataclass(frozen=True)
class _Version:
    """What tells one version of a file from another."""

    tag: str
    modified: float

    @classmethod
    def of(cls, state: os.stat_result, validators: Validators | None) -> _Version:
        if validators is None:
            return cls(f"{state.st_mtime_ns:x}-{state.st_size:x}", state.st_mtime)
        number = int(validators.sha256[:32], 16)
        return cls(f"{number:x}-{state.st_size:x}", float(int(validators.modified.timestamp())))

    def is_refused(self, request: web.Request) -> bool:
        """Whether the client wants to change or continue another version (RFC 9110, 13.1.1 and 13.1.4)."""
        if request.if_match is not None:
            return not self._matches(request.if_match, weak=False)
        since = request.if_unmodified_since
        return since is not None and self.modified > since.timestamp()

    def is_known(self, request: web.Request) -> bool:
        """Whether the client has this version already (RFC 9110, 13.1.2 and 13.1.3)."""
        if request.if_none_match is not None:
            return self._matches(request.if_none_match, weak=True)
        since = request.if_modified_since
        return since is not None and self.modified <= since.timestamp()

    def is_continued(self, request: web.Request) -> bool:
        """Whether a part may be sent: the client has another part of this version (RFC 9110, 13.1.5)."""
        condition = request.headers.get(hdrs.IF_RANGE)
        if condition is None:
            return True
        return condition == f'"{self.tag}"' or _seconds(condition) == math.ceil(self.modified)

    def _matches(self, tags: tuple[ETag, ...], *, weak: bool) -> bool:
        if len(tags) == 1 and tags[0].value == "*":
            return True
        return any(tag.value == self.tag for tag in tags if weak or not tag.is_weak)


async def send_file(
    request: web.Request, path: Path, headers: Mapping[str, str], validators: Validators | None = None
) -> web.StreamResponse:
    """Answer with a file, or with the part that `Range` asks for. Without validators, its own time is used.

    Raises RangeNotSatisfiable, PreconditionFailed (`If-Match` and the like), and NotFound for no file.
    """
    try:
        file, state = await asyncio.to_thread(_open, path)
    except OSError:
        raise NotFound() from None
    try:
        version = _Version.of(state, validators)
        if version.is_refused(request):
            raise PreconditionFailed()
        if version.is_known(request):
            return _response(304, headers, version)
        start, count = _part(request, version, state.st_size)
        response = _response(200 if start is None else 206, headers, version)
        response.headers.setdefault(hdrs.CONTENT_TYPE, _media_type(path))
        response.headers[hdrs.ACCEPT_RANGES] = "bytes"
        if start is not None:
            response.headers[hdrs.CONTENT_RANGE] = f"bytes {start}-{start + count - 1}/{state.st_size}"
        response.content_length = count
        await response.prepare(request)
        await _write(request, response, file, start or 0, count)
        return response
    finally:
        await asyncio.to_thread(file.close)


def _open(path: Path) -> tuple[BinaryIO, os.stat_result]:
    if not stat.S_ISREG(path.stat().st_mode):  # a pipe would block
        raise FileNotFoundError(path)
    file = path.open("rb")
    return file, os.fstat(file.fileno())


def _response(status: int, headers: Mapping[str, str], version: _Version) -> web.StreamResponse:
    response = web.StreamResponse(status=status, headers=headers)
    response.etag = ETag(version.tag)
    response.last_modified = version.modified
    return response


def _part(request: web.Request, version: _Version, size: int) -> tuple[int | None, int]:
    """The start of the part that is asked for and its length; no start for the whole file."""
    if not version.is_continued(request):
        return None, size
    try:
        part = request.http_range
    except ValueError:
        raise _unsatisfiable(size) from None
    if part == WHOLE:
        return None, size
    start, end, _ = part.indices(size)
    if start >= size:
        raise _unsatisfiable(size)
    return start, end - start


def _unsatisfiable(size: int) -> RangeNotSatisfiable:
    return RangeNotSatisfiable(headers={hdrs.CONTENT_RANGE: f"bytes */{size}"})


def _media_type(path: Path) -> str:
    return mimetypes.guess_type(path)[0] or "application/octet-stream"


async def _write(
    request: web.Request, response: web.StreamResponse, file: BinaryIO, start: int, count: int
) -> None:
    """Write the part by sendfile(2), or in pieces where the event loop can't."""
    try:
        if count and request.transport is not None:
            loop = asyncio.get_running_loop()
            await loop.sendfile(request.transport, file, start, count, fallback=False)
    except (NotImplementedError, asyncio.SendfileNotAvailableError):
        await asyncio.to_thread(file.seek, start)
        while count and (piece := await asyncio.to_thread(file.read, min(count, _CHUNK))):
            await response.write(piece)
            count -= len(piece)
    await response.write_eof()


def _seconds(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def part_of(sent: Sequence[str]) -> slice:
    """The part that a GET's `Range` headers ask for, in aiohttp's form.

    Anything but a single byte range is ignored: another unit, several ranges, letters, an end before its
    start. Raises ValueError for the last zero bytes, which no file can satisfy.
    """
    match = _ONE_RANGE.fullmatch(sent[0]) if len(sent) == 1 else None
    first, last = match.groups() if match else ("", "")
    if not first and not last:
        return WHOLE
    if not first:
        return slice(-_suffix(last), None, 1)
    if not last:
        return slice(_number(first), None, 1)
    start, end = _number(first), _number(last)
    return WHOLE if end < start else slice(start, end + 1, 1)


def _suffix(digits: str) -> int:
    length = _number(digits)
    if length == 0:
        raise ValueError("the last zero bytes were asked for")
    return length


def _number(digits: str) -> int:
    """The number, capped above the size of any file."""
    digits = digits.lstrip("0")
    return int(digits or "0") if len(digits) <= _MOST_DIGITS else 10**_MOST_DIGITS
