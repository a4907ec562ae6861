"""Files in and out: a multipart upload streamed to the blob store, a stored file streamed to the client."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote

from aiohttp import BodyPartReader, MultipartReader, StreamReader, web
from aiohttp.http_exceptions import HttpProcessingError

from builtin_plugins.rag.errors import EmptyDocument
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import (
    BadRequest,
    Context,
    PayloadTooLarge,
    RequestTimeout,
    Staged,
    Unavailable,
    Unprocessable,
    UnsupportedMediaType,
)

log = logging.getLogger("platform.rag.files")

T = TypeVar("T")

_MEGABYTE = 1024 * 1024
_FIELD_LIMIT = 1024
_MOST_PARTS = 32
_MOST_LINES = 4096
_LONGEST_LINE = 16 * 1024
_TRUE, _FALSE = (b"true", b"1", b"yes", b"on"), (b"false", b"0", b"no", b"off", b"")
_PLAIN_ENCODINGS = ("binary", "8bit", "7bit")
_MALFORMED = (ValueError, AssertionError, RuntimeError, HttpProcessingError)
# Control characters, halves of characters, line separators, and marks that turn the direction of writing:
# "invoice<turn>fdp.exe" would be shown as "invoiceexe.pdf".
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u202a-\u202e\u2066-\u2069]")


async def receive(ctx: Context) -> tuple[Staged, str]:
    """The upload's file, staged, and its name. Whoever calls discards what it does not keep.

    Raises BadRequest, UnsupportedMediaType, PayloadTooLarge, EmptyDocument, Unprocessable, RequestTimeout,
    and Unavailable when the file can't be written.
    """
    limit = ctx.settings_of(RagSettings).max_upload_size_mb * _MEGABYTE
    if (ctx.request.content_length or 0) > limit + _MEGABYTE:
        raise PayloadTooLarge(f"The file is larger than {limit // _MEGABYTE} MB")
    if ctx.request.content_type != "multipart/form-data":
        raise UnsupportedMediaType("Send the file as multipart/form-data, in the field 'file'")
    try:
        found = await _read_parts(ctx, _form(ctx.request), limit)
    except _MALFORMED as error:
        raise BadRequest("The multipart body is malformed") from error
    if found is None:
        raise Unprocessable.field(("body", "file"), "the field 'file' is missing")
    if found[0].size == 0:
        found[0].discard()
        raise EmptyDocument([_problem("the file is empty")])
    return found


class _FewLines:
    """The body as the form's reader sees it, with an end to its lines (boundaries, headers, the preamble).

    aiohttp reads a preamble line by line and without a bound; ten million empty lines would hold up every
    other request for half a minute. The content of a field is not read by lines.
    """

    def __init__(self, content: StreamReader) -> None:
        self._content = content
        self._left = _MOST_LINES

    async def readline(self, **limits: Any) -> bytes:
        """The next line. Raises BadRequest when there were too many."""
        self._left -= 1
        if self._left < 0:
            raise BadRequest("The multipart body has too many lines outside its file")
        return await self._content.readline(**limits)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)


def _form(request: web.Request) -> MultipartReader:
    content = cast(StreamReader, _FewLines(request.content))
    return MultipartReader(request.headers, content, max_field_size=_LONGEST_LINE)


async def _read_parts(ctx: Context, reader: MultipartReader, limit: int) -> tuple[Staged, str] | None:
    found: tuple[Staged, str] | None = None
    try:
        for _ in range(_MOST_PARTS):
            part = await _timed(ctx, reader.next())
            if part is None:
                return found
            if not isinstance(part, BodyPartReader):
                raise BadRequest("Nested multipart bodies are not accepted")
            if part.name != "file":
                await _other_field(ctx, part)
            elif found is None:
                found = await _file(ctx, part, limit)
            else:
                raise BadRequest("Send one file at a time, in the field 'file'")
        raise BadRequest(f"The form has more than {_MOST_PARTS} fields")
    except BaseException:
        if found is not None:
            found[0].discard()
        raise


async def _file(ctx: Context, part: BodyPartReader, limit: int) -> tuple[Staged, str]:
    if part.filename is None:
        hint = "the field 'file' holds no file; with curl, write -F file=@report.pdf"
        raise Unprocessable.field(("body", "file"), hint)
    encoding = part.headers.get("Content-Transfer-Encoding", "binary").strip().lower()
    if encoding not in _PLAIN_ENCODINGS:
        raise BadRequest("Send the bytes of the file as they are, without Content-Transfer-Encoding")
    try:
        return await ctx.platform.blobs.stage(_pieces(ctx, part), limit), clean_name(part.filename)
    except ConnectionError:
        raise
    except OSError as error:
        log.exception("an upload can't be written")
        raise Unavailable("The file could not be stored; try again later") from error


async def _other_field(ctx: Context, part: BodyPartReader) -> None:
    raw = b""
    async for piece in _pieces(ctx, part):
        raw += piece
        if len(raw) > _FIELD_LIMIT:
            raise BadRequest(
                f"The field '{str(part.name)[:40]}' is too long; send one file, in the field 'file'"
            )
    if part.name == "build_tree":
        _check_build_tree(raw.strip().lower())


def _check_build_tree(raw: bytes) -> None:
    if raw in _FALSE:
        return
    message = "summary trees are not available on this server" if raw in _TRUE else "must be true or false"
    raise Unprocessable.field(("body", "build_tree"), message, raw[:40].decode(errors="replace"))


async def _pieces(ctx: Context, part: BodyPartReader) -> AsyncIterator[bytes]:
    while chunk := await _timed(ctx, part.read_chunk(64 * 1024)):
        yield chunk


async def _timed(ctx: Context, reading: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(ctx.platform.settings.body_timeout):
            return await reading
    except TimeoutError:
        raise RequestTimeout() from None


def clean_name(sent: str) -> str:
    """A file name without folders, control characters and turns of direction, at most 255 characters."""
    name = _UNFIT.sub("", sent.replace("\\", "/").rpartition("/")[2]).strip()
    return "document" if name in ("", ".", "..") else name[-255:]


def send(path: Path, filename: str) -> web.StreamResponse:
    """A stored file as a download; never shown inline, whatever a browser thinks it is."""
    plain = re.sub(r"[^A-Za-z0-9._ -]", "_", filename)
    disposition = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(filename, safe='')}"
    headers = {"Content-Disposition": disposition, "Content-Type": "application/octet-stream"}
    return web.FileResponse(path, headers=headers)


def _problem(message: str) -> dict[str, object]:
    return {"type": "value_error", "loc": ["body", "file"], "msg": message, "input": None}
