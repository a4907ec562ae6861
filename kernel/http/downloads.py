"""Stored files as answers: whole, in part, or not at all where the client has them already."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path

from aiohttp import hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.web_request import BaseRequest

from kernel.errors import NotFound, PreconditionFailed, RangeNotSatisfiable
from kernel.http.wire import Request


async def send_file(request: Request, path: Path, headers: Mapping[str, str]) -> web.StreamResponse:
    """Answer with a file, or with the part that `Range` asks for.

    Raises RangeNotSatisfiable, PreconditionFailed (`If-Match` and the like), and NotFound for no file.
    """
    if_range = request.headers.get(hdrs.IF_RANGE)
    if if_range is not None and hdrs.RANGE in request.headers:
        request.ignores_range = not await asyncio.to_thread(_is_unchanged, path, if_range)
    response = _File(path, headers=headers)
    await response.prepare(request)  # here, not by aiohttp: a refusal is still an answer like all others
    return response


class _File(web.FileResponse):
    """aiohttp's answer, which refuses as everything else does: by an error with a body."""

    def set_status(self, status: int, reason: str | None = None) -> None:
        """Set it; of a refusal, before anything is sent."""
        if status == RangeNotSatisfiable.status:
            raise RangeNotSatisfiable(headers={hdrs.CONTENT_RANGE: self.headers[hdrs.CONTENT_RANGE]})
        if status == PreconditionFailed.status:
            raise PreconditionFailed()
        if status >= 400:
            raise NotFound()
        super().set_status(status, reason)

    async def prepare(self, request: BaseRequest) -> AbstractStreamWriter | None:
        """Send it, once: aiohttp asks again for what a handler returns."""
        return None if self.prepared else await super().prepare(request)


def _is_unchanged(path: Path, if_range: str) -> bool:
    """Whether the file is still the one of which the client has a part (RFC 9110, 13.1.5)."""
    try:
        state = path.stat()
    except OSError:
        return False
    return if_range == f'"{etag_of(state)}"' or _seconds(if_range) == math.ceil(state.st_mtime)


def etag_of(state: os.stat_result) -> str:
    """The entity tag that aiohttp gives a file."""
    return f"{state.st_mtime_ns:x}-{state.st_size:x}"


def _seconds(date: str) -> float | None:
    try:
        found = parsedate_to_datetime(date)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
