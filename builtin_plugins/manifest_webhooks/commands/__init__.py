"""Commands of `platformctl` that this plugin brings."""

from __future__ import annotations

from cli.group import EXTEND, LazyApp

COMMANDS = (
    (
        "manifests",
        LazyApp(
            "builtin_plugins.manifest_webhooks.commands.manifests",
            "Validate and list webhook manifests.",
            EXTEND,
        ),
    ),
)
