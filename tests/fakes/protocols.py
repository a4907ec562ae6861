"""One platform for the tests of other programs' protocols on knowledge bases."""

from __future__ import annotations

from typing import Any, Final

from kernel.testing import Running
from tests.fakes.kept import Kept
from tests.fakes.loaded_once import LoadedOnce

_PLUGINS: Final[tuple[Any, ...]] = (
    *(LoadedOnce, "access_tokens", "extractive_answers"),
    *("dify_knowledge", "oikb_sync", "openai_files"),
)


async def with_protocols(kept: Kept, database: str = "sqlite") -> Running:
    """The platform, which stays open for the next file."""
    return await kept.platform("protocols", database, *_PLUGINS)
