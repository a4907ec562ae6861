"""Documents as they look: made again for each browser that has not seen the page, and kept nowhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

from builtin_plugins.documents.api import PARSER_PROCESSES, PreviewFailed, PreviewFault, preview
from builtin_plugins.rag.errors import NoPreview
from builtin_plugins.rag.models import Document
from builtin_plugins.rag.services import documents
from builtin_plugins.rag.services.records import original
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import Caller, Platform, ResourceKey, TooManyRequests

_VERSION: Final = 2
"""Raise it when the same document would look different."""
_AT_ONCE: Final = 2
"""In one process of the server: each may take half a gigabyte and a processor for 20 s."""
_PATIENCE: Final = 30.0  # seconds
_REASONS: Final[dict[PreviewFault, str]] = {
    "unsupported": "files of this type have no preview",
    "too_large": "it is too large",
    "timeout": "it takes too long",
    "memory": "it needs too much memory",
    "encrypted": "it is protected by a password",
    "corrupt": "a part of it is damaged or can't be read",
    "unavailable": "the server lacks a package for it (pip install 'platform-kernel[documents]')",
}


class PreviewTurns:
    """Who gets a page now: an account gets one at a time, so nobody holds up the others."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(_AT_ONCE)
        self._own = WeakValueDictionary[str, asyncio.Lock]()

    def of_account(self, account: str) -> AbstractAsyncContextManager[None]:
        """An account's turn, while its page is made and sent. Raises TooManyRequests after 30 s."""
        return _in_turn(self._own.setdefault(account, asyncio.Lock()))

    def making(self) -> AbstractAsyncContextManager[None]:
        """Room to make a page. Raises TooManyRequests after 30 s."""
        return _in_turn(self._free)


@asynccontextmanager
async def _in_turn(turn: asyncio.Lock | asyncio.Semaphore) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(_PATIENCE):
            await turn.acquire()
    except TimeoutError:
        raise TooManyRequests(headers={"Retry-After": "5"}) from None
    try:
        yield
    finally:
        turn.release()


PREVIEW_TURNS: Final[ResourceKey[PreviewTurns]] = ResourceKey("rag preview turns")


@asynccontextmanager
async def open_preview_turns(_platform: Platform) -> AsyncIterator[PreviewTurns]:
    """The turns of this process."""
    yield PreviewTurns()


async def find(caller: Caller, kb_id: str, document_id: str) -> Document:
    """A document that the caller may read. Raises KnowledgeBaseNotFound, DocumentNotFound."""
    return await documents.get(caller, kb_id, document_id)


def tag_of(document: Document) -> str:
    """What changes with the document's page."""
    return f"{document.sha256}-{_VERSION}"


@asynccontextmanager
async def page_of(caller: Caller, document: Document) -> AsyncIterator[bytes]:
    """A document's page in HTML, in its account's turn. After waiting, it is looked up again: it may be gone.

    Raises NoPreview, OriginalLost, TooManyRequests, KnowledgeBaseNotFound, DocumentNotFound.
    """
    turns = caller.platform.resource(PREVIEW_TURNS)
    async with turns.of_account(caller.principal.subject):
        async with turns.making():
            page = await _render(caller, await find(caller, document.knowledge_base_id, document.id))
        yield page


async def _render(caller: Caller, document: Document) -> bytes:
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
