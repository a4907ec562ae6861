"""A multipart upload, streamed to the blob store's staging area: one file and a few short fields."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field
from typing import Any, cast

from aiohttp import (
    BodyPartReader,
    MultipartReader,
    StreamReader,
    content_disposition_filename,
    hdrs,
    web,
)
from aiohttp.http_exceptions import HttpProcessingError

from kernel.errors import (
    BadRequest,
    PayloadTooLarge,
    Unavailable,
    Unprocessable,
    UnsupportedMediaType,
)
from kernel.http.context import Context
from kernel.http.validation import BodyClock, media_type
from kernel.libs.names import FORM_ENCODING, clean_name, form_disposition
from kernel.stores.protocols import Staged

log = logging.getLogger("platform.http")

_MEGABYTE = 1024 * 1024
_FIELD_LIMIT = 16 * 1024
_MOST_PARTS = 32
_MOST_LINES = 4096
_LONGEST_LINE = 16 * 1024
_PLAIN_ENCODINGS = ("binary", "8bit", "7bit")
_MALFORMED = (ValueError, AssertionError, RuntimeError, HttpProcessingError)


@dataclass
class ReceivedFile:
    """An upload's staged file, its cleaned name, and the requested other fields of the form.

    Discard `staged` if you don't keep it.
    """

    staged: Staged
    filename: str
    fields: dict[str, str] = field(default_factory=dict)


async def receive_file(ctx: Context, limit_mb: int, fields: Collection[str] = ()) -> ReceivedFile:
    """Read a form with one file in the field ``file``, at most `limit_mb` megabytes.

    Of the form's other fields, those named in `fields` are kept, as text of at most 16,384 bytes; the rest
    are ignored. Raises BadRequest, UnsupportedMediaType, PayloadTooLarge, Unprocessable, RequestTimeout, and
    Unavailable when the file can't be written. Refusing an empty file is left to the caller.
    """
    limit = limit_mb * _MEGABYTE
    if (ctx.request.content_length or 0) > limit + _MEGABYTE:
        raise PayloadTooLarge(f"The file is larger than {limit_mb} MB")
    if media_type(ctx.request) != "multipart/form-data":
        raise UnsupportedMediaType("Send the file as multipart/form-data, in the field 'file'")
    form = _Form(ctx, limit, fields)
    try:
        return await form.read(_reader(ctx.request))
    except _MALFORMED as error:
        raise BadRequest("The multipart body is malformed") from error


class _FewLines:
    """The body for the form's reader, with a limit on its lines (boundaries, headers, the preamble).

    aiohttp reads a preamble line by line and without a limit; ten million empty lines would block every other
    request for half a minute. The content of a field is not read by lines.
    """

    def __init__(self, content: StreamReader) -> None:
        self._content = content
        self._left = _MOST_LINES

    async def readline(self, **limits: Any) -> bytes:
        """The next line. Raises BadRequest after too many."""
        self._left -= 1
        if self._left < 0:
            raise BadRequest("The multipart body has too many lines outside its file")
        return await self._content.readline(**limits)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)


class _FormReader(MultipartReader):
    """A reader that skips the field `_charset_` (RFC 7578) that a form may begin with.

    aiohttp's own reads its value, but not the boundary behind it. All names are taken for UTF-8.
    """

    _is_first = True

    async def fetch_next_part(self) -> MultipartReader | BodyPartReader:
        """The next part; the reader asks for it behind each boundary."""
        part = await super().fetch_next_part()
        is_first, self._is_first = self._is_first, False
        if not is_first or not isinstance(part, BodyPartReader) or part.name != FORM_ENCODING:
            return part
        size = 0
        while chunk := await part.read_chunk():
            size += len(chunk)
            if size > _FIELD_LIMIT:
                raise BadRequest(f"The field '{FORM_ENCODING}' is too long; it names an encoding")
        return cast(BodyPartReader, await self.next())


def _reader(request: web.Request) -> MultipartReader:
    content = cast(StreamReader, _FewLines(request.content))
    return _FormReader(request.headers, content, max_field_size=_LONGEST_LINE)


def _parameters(part: BodyPartReader) -> dict[str, str]:
    """The names of a part's field and file, parsed once: the reader's properties would parse each time.

    Raises BadRequest.
    """
    header = part.headers.get(hdrs.CONTENT_DISPOSITION)
    kind, parameters = form_disposition(header)
    if header is not None and kind is None:
        raise BadRequest("The Content-Disposition of a form field can't be read: check its quotes and names")
    return parameters


class _Form:
    """One form while it is being read."""

    def __init__(self, ctx: Context, limit: int, field_names: Collection[str]) -> None:
        self._ctx = ctx
        self._clock = BodyClock(ctx.request, ctx.platform.settings.body_timeout)
        self._limit = limit
        self._field_names = field_names
        self._file: ReceivedFile | None = None
        self._fields: dict[str, str] = {}

    async def read(self, reader: MultipartReader) -> ReceivedFile:
        """The file and the fields. If anything is wrong, the file is discarded."""
        try:
            await self._read_parts(reader)
            if self._file is None:
                raise Unprocessable.field(("body", "file"), "the field 'file' is missing")
        except BaseException:  # including a client that leaves: no file stays behind
            if self._file is not None:
                self._file.staged.discard()
            raise
        self._file.fields = self._fields
        return self._file

    async def _read_parts(self, reader: MultipartReader) -> None:
        for _ in range(_MOST_PARTS):
            part = await self._clock.wait(reader.next())
            if part is None:
                return
            if not isinstance(part, BodyPartReader):
                raise BadRequest("Nested multipart bodies are not accepted")
            parameters = _parameters(part)
            name = content_disposition_filename(parameters, "name")
            if name != "file":
                await self._read_field(part, name)
            elif self._file is None:
                filename = content_disposition_filename(parameters, "filename")
                self._file = await self._read_file(part, filename)
            else:
                raise BadRequest("Send one file at a time, in the field 'file'")
        raise BadRequest(f"The form has more than {_MOST_PARTS} fields")

    async def _read_file(self, part: BodyPartReader, filename: str | None) -> ReceivedFile:
        if filename is None:
            hint = "the field 'file' holds no file; with curl, write -F file=@report.pdf"
            raise Unprocessable.field(("body", "file"), hint)
        encoding = part.headers.get("Content-Transfer-Encoding", "binary").strip().lower()
        if encoding not in _PLAIN_ENCODINGS:
            raise BadRequest("Send the bytes of the file as they are, without Content-Transfer-Encoding")
        try:
            staged = await self._ctx.platform.blobs.stage(self._pieces(part), self._limit)
        except ConnectionError:
            raise
        except OSError as error:
            log.exception("an upload can't be written")
            raise Unavailable("The file could not be stored; try again later") from error
        return ReceivedFile(staged, clean_name(filename))

    async def _read_field(self, part: BodyPartReader, name: str | None) -> None:
        raw = b""
        async for piece in self._pieces(part):
            raw += piece
            if len(raw) > _FIELD_LIMIT:
                what = "A field without a name" if name is None else f"The field '{clean_name(name)[:40]}'"
                raise BadRequest(f"{what} is too long; send one file, in the field 'file'")
        if name is not None and name in self._field_names:
            self._fields[name] = raw.decode(errors="replace")

    async def _pieces(self, part: BodyPartReader) -> AsyncIterator[bytes]:
        while chunk := await self._clock.wait(part.read_chunk(64 * 1024)):
            yield chunk
