"""Waits for ever while it opens its resource."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kernel.sdk import Platform, Plugin, Resource, ResourceKey, hookimpl

_NEVER: ResourceKey[None] = ResourceKey("never")


class Hangs(Plugin):
    name = "hangs_at_open"

    @hookimpl
    def register_resources(self) -> list[Resource[Any]]:
        return [Resource(_NEVER, _open)]


@asynccontextmanager
async def _open(_platform: Platform) -> AsyncIterator[None]:
    await asyncio.Event().wait()
    yield
