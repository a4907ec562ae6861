"""A worker process that stops for good before its `HANGS_AT`th call for vectors.

Run as ``python -m tests.builtin_plugins.rag.tree_worker``; the environment says where the platform lives, and
in `PLUGINS` which plugins it has (by default `rag`). The file `HANGING` appears when it stops.
"""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

from kernel.testing import candidates_of
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.plugin_worker import work_until_stopped


def hanging(at: int, sign: Path) -> HashEmbeddings:
    """Embeddings that never come back from a call."""
    made, calls = HashEmbeddings(), iter(range(1, 1_000_000))

    def before() -> None:
        if next(calls) == at:
            sign.touch()
            threading.Event().wait()

    made.before = before
    return made


async def main() -> None:
    """Work until SIGTERM."""
    embeddings = hanging(int(os.environ["HANGS_AT"]), Path(os.environ["HANGING"]))
    await work_until_stopped(candidates_of(*os.environ.get("PLUGINS", "rag").split(), embeddings))


if __name__ == "__main__":
    asyncio.run(main())
