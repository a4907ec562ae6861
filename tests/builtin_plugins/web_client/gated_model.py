"""An embedding model that takes each step only when a test lets it: work on a knowledge base under way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from builtin_plugins.inference import api as inference
from builtin_plugins.inference.api import Embedded
from kernel.sdk import Plugin, hookimpl
from tests.fakes.hash_embeddings import HashEmbeddings

GATED = "gated"


class GatedModel(Plugin):
    """Answers for the model `gated`; every batch of passages waits for `let`."""

    name = "gated_model"

    def __init__(self) -> None:
        self._model = HashEmbeddings("gated-1")
        self._steps = asyncio.Semaphore(0)

    def let(self, batches: int) -> None:
        for _ in range(batches):
            self._steps.release()

    def stop(self) -> None:
        """Allow none any more; a batch that waits already goes on, as nothing else could let it."""
        self.let(10_000)
        self._steps = asyncio.Semaphore(0)

    @hookimpl(tryfirst=True)
    async def embed_texts(
        self, model: str, texts: Sequence[str], purpose: inference.Purpose
    ) -> Embedded | None:
        if model != GATED:
            return None
        if purpose == "passage":
            await self._steps.acquire()
        return await self._model.embed_texts("all-minilm", texts)
