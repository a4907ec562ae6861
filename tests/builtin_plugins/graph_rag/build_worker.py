"""A worker whose engine stops at the second document, until it is killed.

Run as ``python -m tests.builtin_plugins.graph_rag.build_worker``; `REACHED` names the file that it writes.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from builtin_plugins.graph_rag.building.protocol import Extraction, ExtractionEngine
from builtin_plugins.graph_rag.building.rule_engine import rules
from kernel.sdk import Plugin, hookimpl
from kernel.testing import candidates_of
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.plugin_worker import work_until_stopped


class StoppingPlugin(Plugin):
    """The rules, which never come back from the second document where a file is named."""

    name = "stopping"

    def __init__(self, reached: str = "") -> None:
        self.reached = reached
        self.documents = 0

    @hookimpl
    def register_extractors(self) -> Sequence[ExtractionEngine]:
        return [ExtractionEngine("stopping", "1", self._analyse)]

    def _analyse(self, texts: Sequence[str], language: str | None) -> Sequence[Extraction]:
        self.documents += 1
        if self.reached and self.documents == 2:
            Path(self.reached).touch()
            threading.Event().wait()
        return rules().analyse(texts, language)


async def main() -> None:
    """Work until SIGTERM."""
    stopping = StoppingPlugin(os.environ["REACHED"])
    await work_until_stopped(candidates_of("rag", "graph_rag", HashEmbeddings(), stopping), tidy=True)


if __name__ == "__main__":
    asyncio.run(main())
