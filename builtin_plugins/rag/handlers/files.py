"""Files in and out: an upload as the kernel receives it, a stored file streamed to the client."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

from aiohttp import web

from builtin_plugins.rag.errors import EmptyDocument
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import Context, PlatformError, Staged, Unprocessable, receive_file

_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off", "")


async def receive(ctx: Context) -> tuple[Staged, str, bool]:
    """The upload's file, staged, its name, and whether it shall have a tree.

    Whoever calls discards what it does not keep.

    Raises EmptyDocument besides what `receive_file` raises.
    """
    found = await receive_file(ctx, ctx.settings_of(RagSettings).max_upload_size_mb, ("build_tree",))
    try:
        build_tree = _flag(found.fields.get("build_tree", "").strip().lower())
        if found.staged.size == 0:
            raise EmptyDocument([_problem("the file is empty")])
    except PlatformError:
        found.staged.discard()
        raise
    return found.staged, found.filename, build_tree


def _flag(sent: str) -> bool:
    if sent not in _TRUE + _FALSE:
        raise Unprocessable.field(("body", "build_tree"), "must be true or false", sent[:40])
    return sent in _TRUE


def send(path: Path, filename: str) -> web.StreamResponse:
    """A stored file as a download; never shown inline, whatever a browser thinks it is."""
    plain = re.sub(r"[^A-Za-z0-9._ -]", "_", filename)
    disposition = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(filename, safe='')}"
    headers = {"Content-Disposition": disposition, "Content-Type": "application/octet-stream"}
    return web.FileResponse(path, headers=headers)


def _problem(message: str) -> dict[str, object]:
    return {"type": "value_error", "loc": ["body", "file"], "msg": message, "input": None}
