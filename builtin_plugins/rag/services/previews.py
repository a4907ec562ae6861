"""Documents as they look: made again for each browser that has not seen the page, and kept nowhere."""

from __future__ import annotations

from typing import Final

from builtin_plugins.documents.api import PARSER_PROCESSES, PreviewFailed, PreviewFault, preview
from builtin_plugins.rag.errors import NoPreview
from builtin_plugins.rag.models import Document
from builtin_plugins.rag.services import documents
from builtin_plugins.rag.services.records import original
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import Caller

_VERSION: Final = 1
"""Raise it when the same document would look different."""
_REASONS: Final[dict[PreviewFault, str]] = {
    "unsupported": "files of this type have no preview",
    "too_large": "it is too large",
    "timeout": "it takes too long",
    "memory": "it needs too much memory",
    "encrypted": "it is protected by a password",
    "corrupt": "a part of it is damaged or can't be read",
    "unavailable": "the server lacks a package for it (pip install 'platform-kernel[documents]')",
}


async def find(caller: Caller, kb_id: str, document_id: str) -> Document:
    """A document that the caller may read. Raises KnowledgeBaseNotFound, DocumentNotFound."""
    return await documents.get(caller, kb_id, document_id)


def tag_of(document: Document) -> str:
    """What changes with the document's page."""
    return f"{document.sha256}-{_VERSION}"


async def render(caller: Caller, document: Document) -> bytes:
    """A document's page in HTML. Raises NoPreview, OriginalLost."""
    platform = caller.platform
    path = await original(platform, document)
    limits = platform.settings_of(RagSettings).parse_limits(large=False)
    try:
        return await preview(
            platform.resource(PARSER_PROCESSES),
            path,
            document.content_type,
            limits,
            platform.scratch.new(".html"),
        )
    except PreviewFailed as failure:
        raise NoPreview(
            f"This file can't be shown as it looks: {_REASONS[failure.fault]}. Its text can be read."
        ) from None
