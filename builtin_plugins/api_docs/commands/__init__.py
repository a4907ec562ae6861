"""Commands of `platformctl` that this plugin brings."""

from __future__ import annotations

from cli.group import EXTEND, LazyApp

COMMANDS = (
    (
        "openapi",
        LazyApp(
            "builtin_plugins.api_docs.commands.openapi",
            "Print the API's OpenAPI document.",
            EXTEND,
        ),
    ),
)
