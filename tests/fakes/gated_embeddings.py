"""Embeddings that wait at a door, so that a test can look at a document that is half read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from builtin_plugins.inference.api import Embedded
from kernel.sdk import hookimpl
from tests.fakes.hash_embeddings import HashEmbeddings


class GatedEmbeddings(HashEmbeddings):
    """Stops before a batch of passages until it is let go, with `all_after` before later ones too."""

    def __init__(self, stop_before: int = 1, *, all_after: bool = False) -> None:
        super().__init__()
        self.all_after = all_after
        self.batches = 0
        self.stop_before = stop_before
        self.arrived = asyncio.Event()
        self.go = asyncio.Event()

    @hookimpl
    async def embed_texts(self, model: str, texts: Sequence[str], purpose: str) -> Embedded | None:
        if purpose == "passage":
            self.batches += 1
            if self.batches == self.stop_before or (self.all_after and self.batches > self.stop_before):
                self.arrived.set()
                await self.go.wait()
        return await super().embed_texts(model, texts)
