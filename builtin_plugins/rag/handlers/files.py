"""An uploaded file and the other fields of its form."""

from __future__ import annotations

from builtin_plugins.rag.errors import EmptyDocument
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import Context, PlatformError, Staged, Unprocessable, receive_file

_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off", "")


async def receive(ctx: Context) -> tuple[Staged, str, bool]:
    """The staged file, its name, and whether to build a tree for it.

    The caller discards the file unless it keeps it.

    Raises EmptyDocument and what `receive_file` raises.
    """
    found = await receive_file(ctx, ctx.settings_of(RagSettings).max_upload_size_mb, ("build_tree",))
    try:
        build_tree = _flag(found.fields.get("build_tree", "").strip().lower())
        if found.staged.size == 0:
            raise EmptyDocument([_problem("the file is empty")])
    except PlatformError:
        found.staged.discard()
        raise
    return found.staged, found.filename, build_tree


def _flag(sent: str) -> bool:
    if sent not in _TRUE + _FALSE:
        raise Unprocessable.field(("body", "build_tree"), "must be true or false", sent[:40])
    return sent in _TRUE


def _problem(message: str) -> dict[str, object]:
    return {"type": "value_error", "loc": ["body", "file"], "msg": message, "input": None}
