"""Stored files as responses: whole, in part, or not at all if the client already has them."""

from __future__ import annotations

import asyncio
import io
import math
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import NamedTuple

from aiohttp import hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.web_request import BaseRequest

from kernel.errors import NotFound, PreconditionFailed, RangeNotSatisfiable
from kernel.http.wire import Request


class Validators(NamedTuple):
    """Validators of a file's version (RFC 9110, 8.8): its hash in hex, and the time since which it exists.

    A stored file may be shared by owners who don't know of each other: its own time would tell one when
    another stored it.
    """

    sha256: str
    modified: datetime

    def instead_of(self, state: os.stat_result) -> os.stat_result:
        """A file's state with these as its time, from which aiohttp derives tag, date and conditions."""
        seconds = int(self.modified.timestamp())
        times = {"st_mtime": float(seconds), "st_mtime_ns": int(self.sha256[:32], 16)}
        return os.stat_result((*state[:8], seconds, *state[9:10]), times)


async def send_file(
    request: Request, path: Path, headers: Mapping[str, str], validators: Validators | None = None
) -> web.StreamResponse:
    """Answer with a file, or with the part that `Range` asks for. Without validators, its own time is used.

    Raises RangeNotSatisfiable, PreconditionFailed (`If-Match` and the like), and NotFound for no file.
    """
    if_range = request.headers.get(hdrs.IF_RANGE)
    response = _File(path, headers, validators)
    if if_range is not None and hdrs.RANGE in request.headers:
        request.ignores_range = not await asyncio.to_thread(response.is_unchanged, if_range)
    await response.prepare(request)  # here, not in aiohttp: a refusal can still get a body like all others
    return response


class _File(web.FileResponse):
    """aiohttp's response, but a refusal is raised as one of our errors, with a body."""

    def __init__(self, path: Path, headers: Mapping[str, str], validators: Validators | None) -> None:
        super().__init__(path, headers=headers)
        self._validators = validators

    def is_unchanged(self, if_range: str) -> bool:
        """Whether the file is still the one that the client has a part of (RFC 9110, 13.1.5). Blocks."""
        try:
            state = self._told(self._path.stat())
        except OSError:
            return False
        tag = f"{state.st_mtime_ns:x}-{state.st_size:x}"  # aiohttp's formula
        return if_range == f'"{tag}"' or _seconds(if_range) == math.ceil(state.st_mtime)

    def _told(self, state: os.stat_result) -> os.stat_result:
        return state if self._validators is None else self._validators.instead_of(state)

    def _get_file_path_stat_encoding(
        self, accept_encoding: str
    ) -> tuple[Path | None, os.stat_result, str | None]:
        path, state, encoding = super()._get_file_path_stat_encoding(accept_encoding)
        return path, self._told(state), encoding

    async def _prepare_open_file(
        self, request: BaseRequest, fobj: io.BufferedReader, st: os.stat_result, file_encoding: str | None
    ) -> AbstractStreamWriter | None:
        return await super()._prepare_open_file(request, fobj, self._told(st), file_encoding)

    def set_status(self, status: int, reason: str | None = None) -> None:
        """Set the status; raises the error for a refusal, before anything is sent."""
        if status == RangeNotSatisfiable.status:
            raise RangeNotSatisfiable(headers={hdrs.CONTENT_RANGE: self.headers[hdrs.CONTENT_RANGE]})
        if status == PreconditionFailed.status:
            raise PreconditionFailed()
        if status >= 400:
            raise NotFound()
        super().set_status(status, reason)

    async def prepare(self, request: BaseRequest) -> AbstractStreamWriter | None:
        """Send the file once: aiohttp calls this again for the response that a handler returns."""
        return None if self.prepared else await super().prepare(request)


def _seconds(date: str) -> float | None:
    try:
        found = parsedate_to_datetime(date)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
