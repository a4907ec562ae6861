"""Commands of `platformctl` that this plugin brings."""

from __future__ import annotations

from cli.group import MANAGE, LazyApp

COMMANDS = (
    (
        "eval",
        LazyApp(
            "builtin_plugins.evaluation.commands.eval", "Measure how well a knowledge base answers.", MANAGE
        ),
    ),
)
