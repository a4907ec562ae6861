"""What goes wrong at a server of the tests, which is told by one word."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from builtin_plugins.sources.conformance_rights import GuardedWorld


class SpoiltServer(Protocol):
    """`spoil` is what goes wrong, `most` how many entries a page has."""

    spoil: str
    most: int


class SpoiltWorld(GuardedWorld):
    """A world whose server misbehaves as the suites want it."""

    def __init__(self, server: SpoiltServer) -> None:
        self._server = server

    @asynccontextmanager
    async def spoilt(self, how: str) -> AsyncIterator[None]:
        """Let this go wrong meanwhile."""
        self._server.spoil = how
        try:
            yield
        finally:
            self._server.spoil = ""

    def cut_off(self) -> AbstractAsyncContextManager[object]:
        return self.spoilt("cut")

    def shortened(self) -> AbstractAsyncContextManager[object]:
        return self.spoilt("short")

    def throttled(self) -> AbstractAsyncContextManager[object]:
        return self.spoilt("busy")

    def repeated(self) -> AbstractAsyncContextManager[object]:
        self._server.most = 3
        return self.spoilt("repeated")

    def expired(self) -> AbstractAsyncContextManager[object]:
        return self.spoilt("expired")

    def rights_cut_off(self) -> AbstractAsyncContextManager[object]:
        return self.spoilt("rights")
