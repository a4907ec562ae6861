"""The widget's script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kernel.sdk import Platform, ResourceKey

WIDGET: ResourceKey[bytes] = ResourceKey("published_chat.widget")


@asynccontextmanager
async def open_widget(platform: Platform) -> AsyncIterator[bytes]:
    """The file, read once."""
    yield await asyncio.to_thread((Path(__file__).parent / "widget.js").read_bytes)
