"""Commands of `platformctl` that this plugin brings."""

from __future__ import annotations

from cli.group import EXTEND, LazyApp

COMMANDS = (
    (
        "graph",
        LazyApp("builtin_plugins.graph_rag.commands.graph", "Draw the knowledge graph of documents.", EXTEND),
    ),
)
