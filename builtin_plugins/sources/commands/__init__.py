"""Commands of `platformctl` that this plugin brings."""

from __future__ import annotations

from cli.group import USE, LazyApp

COMMANDS = (
    (
        "sources",
        LazyApp(
            "builtin_plugins.sources.commands.sources",
            "Keep knowledge bases in step with folders, repositories and servers.",
            USE,
        ),
    ),
)
