"""Commands of `platformctl` that this plugin brings."""

from __future__ import annotations

from cli.group import MANAGE, LazyApp

COMMANDS = (
    (
        "backup",
        LazyApp(
            "builtin_plugins.platform_ops.commands.backup",
            "Make, check, restore and rehearse backups.",
            MANAGE,
        ),
    ),
)
