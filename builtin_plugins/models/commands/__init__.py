"""Commands of `platformctl` that this plugin brings."""

from __future__ import annotations

from cli.group import RUN, LazyApp

COMMANDS = (
    (
        "models",
        LazyApp(
            "builtin_plugins.models.commands.models", "Connect model servers, or try a small model.", RUN
        ),
    ),
)
