"""Commands of `platformctl` that this plugin brings."""

from __future__ import annotations

from cli.group import MANAGE, LazyApp

COMMANDS = (
    (
        "secret",
        LazyApp(
            "builtin_plugins.owner_secrets.commands.secret",
            "Store, list and remove secrets, such as those of webhooks.",
            MANAGE,
        ),
    ),
)
