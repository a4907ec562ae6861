"""Files in and out: a multipart upload streamed to the blob store, a stored file streamed to the client."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

from aiohttp import BodyPartReader, MultipartReader, web

from builtin_plugins.rag.errors import EmptyDocument
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import BadRequest, Context, PayloadTooLarge, RequestTimeout, Staged, Unprocessable

_MEGABYTE = 1024 * 1024
_FIELD_LIMIT = 1024
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


async def receive(ctx: Context) -> tuple[Staged, str]:
    """The upload's file, staged, and its name. Whoever calls discards what it does not keep.

    Raises BadRequest, PayloadTooLarge, EmptyDocument, Unprocessable, RequestTimeout.
    """
    limit = ctx.settings_of(RagSettings).max_upload_size_mb * _MEGABYTE
    if (ctx.request.content_length or 0) > limit + _MEGABYTE:
        raise PayloadTooLarge(f"The file is larger than {limit // _MEGABYTE} MB")
    if ctx.request.content_type != "multipart/form-data":
        raise BadRequest("Send the file as multipart/form-data, in the field 'file'")
    found: tuple[Staged, str] | None = None
    try:
        found = await _read_parts(ctx, await ctx.request.multipart(), limit)
    except (ValueError, AssertionError, RuntimeError) as error:
        raise BadRequest("The multipart body is malformed") from error
    if found is None:
        raise Unprocessable.field(("body", "file"), "the field 'file' is missing")
    if found[0].size == 0:
        found[0].discard()
        raise EmptyDocument([_problem("the file is empty")])
    return found


async def _read_parts(ctx: Context, reader: MultipartReader, limit: int) -> tuple[Staged, str] | None:
    found: tuple[Staged, str] | None = None
    try:
        while (part := await _timed(ctx, reader.next())) is not None:
            if not isinstance(part, BodyPartReader):
                raise BadRequest("Nested multipart bodies are not accepted")
            if part.name == "file" and found is None:
                staged = await ctx.platform.blobs.stage(_pieces(ctx, part), limit)
                found = staged, clean_name(part.filename)
            else:
                await _other_field(ctx, part)
    except BaseException:
        if found is not None:
            found[0].discard()
        raise
    return found


async def _other_field(ctx: Context, part: BodyPartReader) -> None:
    raw = b""
    async for piece in _pieces(ctx, part):
        raw += piece
        if len(raw) > _FIELD_LIMIT:
            raise BadRequest(
                f"The field '{str(part.name)[:40]}' is too long; send one file, in the field 'file'"
            )
    if part.name == "build_tree" and raw.strip().lower() in (b"true", b"1", b"yes", b"on"):
        raise Unprocessable.field(
            ("body", "build_tree"), "summary trees are not available on this server", "true"
        )


async def _pieces(ctx: Context, part: BodyPartReader) -> AsyncIterator[bytes]:
    while chunk := await _timed(ctx, part.read_chunk(64 * 1024)):
        yield chunk


async def _timed(ctx: Context, reading: object) -> object:
    try:
        async with asyncio.timeout(ctx.platform.settings.body_timeout):
            return await reading  # type: ignore[misc]
    except TimeoutError:
        raise RequestTimeout() from None


def clean_name(sent: str | None) -> str:
    """A file name without folders and control characters, at most 255 characters."""
    name = _CONTROL.sub("", (sent or "").replace("\\", "/").rpartition("/")[2]).strip()
    return name[-255:] or "document"


def send(path: Path, filename: str) -> web.StreamResponse:
    """A stored file as a download; never shown inline, whatever a browser thinks it is."""
    plain = re.sub(r"[^A-Za-z0-9._ -]", "_", filename)
    disposition = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(filename)}"
    headers = {"Content-Disposition": disposition, "Content-Type": "application/octet-stream"}
    return web.FileResponse(path, headers=headers)


def _problem(message: str) -> dict[str, object]:
    return {"type": "value_error", "loc": ["body", "file"], "msg": message, "input": None}
