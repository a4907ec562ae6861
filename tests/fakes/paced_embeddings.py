"""Vectors of hashed words that take a moment but no processor, for processes in which they don't matter.

`paced` makes it a package that other processes find; the built-in `embeddings` is then left out. Texts take
turns, as with a model, so that a stop finds documents under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from builtin_plugins.inference.api import Embedded
from kernel.sdk import hookimpl
from tests.cli.packages import Package
from tests.fakes.hash_embeddings import HashEmbeddings

_SECONDS = 0.015  # for each text, as the default model takes


class PacedEmbeddings(HashEmbeddings):
    """Answers after a while."""

    name = "paced_embeddings"
    version = "1.0"

    def __init__(self) -> None:
        super().__init__()
        self._turn = asyncio.Lock()

    @hookimpl
    async def embed_texts(self, model: str, texts: Sequence[str]) -> Embedded | None:
        async with self._turn:
            await asyncio.sleep(len(texts) * _SECONDS)
        return await super().embed_texts(model, texts)


def paced(folder: Path) -> dict[str, str]:
    """Install it into `folder`; the variables with which processes load it."""
    body = f"from {__name__} import PacedEmbeddings as ThePlugin\n"
    return {"PYTHONPATH": str(Package("paced-embeddings", body=body).unpack(folder))}
