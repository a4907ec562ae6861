"""Commands of `platformctl` that this plugin brings."""

from __future__ import annotations

from cli.group import MANAGE, LazyApp

COMMANDS = (
    (
        "milvus",
        LazyApp("builtin_plugins.milvus.commands.milvus", "Fill or clear the search engine.", MANAGE),
    ),
)
