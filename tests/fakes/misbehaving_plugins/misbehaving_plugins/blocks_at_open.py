"""Blocks the event loop itself while it opens its resource: no time limit in the loop can end that."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kernel.sdk import Platform, Plugin, Resource, ResourceKey, hookimpl

_BLOCKED: ResourceKey[None] = ResourceKey("blocked")


class Blocks(Plugin):
    name = "blocks_at_open"

    @hookimpl
    def register_resources(self) -> list[Resource[Any]]:
        return [Resource(_BLOCKED, _open)]


@asynccontextmanager
async def _open(_platform: Platform) -> AsyncIterator[None]:
    time.sleep(1000)  # noqa: ASYNC251 - the fault that this plugin shows
    yield
