"""Commands of `platformctl` that this plugin brings."""

from __future__ import annotations

from cli.group import RUN, LazyApp

COMMANDS = (
    (
        "demo",
        LazyApp(
            "builtin_plugins.demo.commands.demo",
            "Try it out: ingest documents, ask, get cited answers. Leaves nothing behind.",
            RUN,
        ),
    ),
)
