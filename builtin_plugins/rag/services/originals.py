"""The original bytes of documents, as the blob store has them."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from builtin_plugins.rag.models import Document
from kernel.sdk import Platform, Unavailable

log = logging.getLogger("platform.rag")


class OriginalLost(Unavailable):
    """The store has lost a document's original, or a part of it. Uploading the same file stores it again."""

    default_detail = (
        "The document's original file is missing or incomplete in the server's storage; upload it again, or"
        " ask the operator to restore it"
    )


async def original(platform: Platform, document: Document) -> Path:
    """A file with the document's original bytes. Raises OriginalLost.

    Only the size is checked, which costs nothing: a store that fails midway leaves a short file, not a
    different one.
    """
    path = await platform.blobs.local(document.sha256)
    found = await asyncio.to_thread(_size, path)
    if found != document.size_bytes:
        log.error(
            "the original of document %s (%s…) has %s bytes instead of %d",
            *(document.id, document.sha256[:12], "no" if found is None else found, document.size_bytes),
        )
        raise OriginalLost
    return path


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None
