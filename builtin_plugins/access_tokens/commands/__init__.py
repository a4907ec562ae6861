"""Commands of `platformctl` that this plugin brings."""

from __future__ import annotations

from cli.group import MANAGE, LazyApp

COMMANDS = (
    (
        "token",
        LazyApp(
            "builtin_plugins.access_tokens.commands.token",
            "Create, list and revoke personal access tokens.",
            MANAGE,
        ),
    ),
)
