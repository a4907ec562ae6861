"""Commands of `platformctl` that this plugin brings."""

from __future__ import annotations

from cli.group import MANAGE, USE, LazyApp

COMMANDS = (
    (
        "ingest",
        LazyApp(
            "builtin_plugins.rag.commands.ingest",
            "Upload files and folders, and wait until they are searchable.",
            USE,
        ),
    ),
    (
        "fields",
        LazyApp("builtin_plugins.rag.commands.fields", "Show and declare the fields of documents.", USE),
    ),
    ("ask", LazyApp("builtin_plugins.rag.commands.ask", "Ask a question, and get a cited answer.", USE)),
    (
        "search",
        LazyApp("builtin_plugins.rag.commands.search", "Find passages, without an answer.", USE),
    ),
    (
        "rag",
        LazyApp(
            "builtin_plugins.rag.commands.receipts",
            "Compare versions of documents, prove deletions.",
            MANAGE,
        ),
    ),
)
