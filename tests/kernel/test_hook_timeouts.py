"""Hooks with a limit of time, whose implementations wait for something."""

from __future__ import annotations

import asyncio

import pytest

from kernel.hooks.calling import Hooks
from kernel.hooks.manager import HookManager
from kernel.plugins.loading import Plugin, PluginHost, direct_candidates
from kernel.sdk import hookimpl, hookspec

pytestmark = pytest.mark.asyncio(loop_scope="session")


@hookspec.first(seconds=30)
def find_stock(article: str) -> int | None:
    """How many there are of an article."""


class Store(Plugin):
    """Counts what comes in."""

    name = "store"

    def __init__(self) -> None:
        self.delivered: asyncio.Queue[int] = asyncio.Queue()
        self.asked = asyncio.Event()
        self.left: list[str] = []

    @hookimpl
    async def find_stock(self, article: str) -> int:
        self.asked.set()
        try:
            found = await self.delivered.get()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await asyncio.Event().wait()
            return found + await self.delivered.get()
        finally:
            self.left.append(article)


def hooks_of(plugin: Plugin) -> Hooks:
    """Its hooks; a failure of the plugin fails the test."""
    host = PluginHost(HookManager(find_stock), timeout=5)
    host.load(direct_candidates([plugin]))

    def failed(plugin: str, hook: str, error: BaseException) -> None:
        pytest.fail(f"{plugin}: {hook}: {error!r}")

    return Hooks(host.manager, failed, failed)


async def test_one_that_waits_several_times() -> None:
    """It gets each result, and the limit takes none of its own timeouts for the platform's."""
    store = Store()
    asked = asyncio.ensure_future(hooks_of(store).ask(find_stock, article="nail"))
    await store.asked.wait()
    for number in (1, 2):
        store.delivered.put_nowait(number)
    assert await asked == 3


async def test_whoever_asks_leaves() -> None:
    """The implementation is cancelled with its caller, and cleans up."""
    store = Store()
    asked = asyncio.ensure_future(hooks_of(store).ask(find_stock, article="nail"))
    await store.asked.wait()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert store.left == ["nail"]
