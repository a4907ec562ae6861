"""What a model may ask of the plugin."""

from __future__ import annotations

from typing import Any

from kernel.sdk import AUTHENTICATED, Action, Context
from sample_plugin import bookmarks
from sample_plugin.schemas import BookmarkOut, FindBookmarks


async def _find(ctx: Context, parameters: FindBookmarks) -> dict[str, Any]:
    found = await bookmarks.find(ctx.platform, parameters.words)
    return {"bookmarks": [BookmarkOut.model_validate(item).model_dump(mode="json") for item in found]}


FIND = Action(
    "find",
    "Find bookmarks by words of their title or note.",
    FindBookmarks,
    _find,
    access=AUTHENTICATED,
    read_only=True,
    open_world=False,
)
