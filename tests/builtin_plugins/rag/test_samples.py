"""Questions that a backup records: what they are made of, and that their answers stay the same."""

from __future__ import annotations

import pytest

from builtin_plugins.platform_ops import api as platform_ops
from kernel.testing import Running, Start
from tests.builtin_plugins.rag.rag_support import ingest, make_base
from tests.fakes.loaded_once import LoadedOnce

LONGEST = "The harbour master of Emden opens the great lock at six every morning."
TEXT = f"# Harbour\n\nShips wait. {LONGEST} He closes it at ten."


async def answers(running: Running) -> dict[str, str]:
    (found,) = await running.platform.hooks.ask(platform_ops.find_sample_answers, platform=running.platform)
    return dict(found)


@pytest.mark.own_installation
async def test_hook_find_sample_answers(start_platform: Start) -> None:
    """A document is asked for its longest sentence, and answers with it, again and again."""
    running = await start_platform(LoadedOnce, "models", "rag", "extractive_answers")
    assert await answers(running) == {}
    ann = await running.user()
    await ingest(running, ann, await make_base(ann), "harbour.md", TEXT)
    found = await answers(running)
    assert list(found) == [LONGEST]
    assert LONGEST in found[LONGEST]
    assert await answers(running) == found
