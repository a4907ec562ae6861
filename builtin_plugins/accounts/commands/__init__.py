"""Commands of `platformctl` that this plugin brings."""

from __future__ import annotations

from cli.group import MANAGE, LazyApp

_HERE = "builtin_plugins.accounts.commands"

COMMANDS = (
    ("users", LazyApp(f"{_HERE}.users", "Create, list and manage accounts.", MANAGE)),
    (
        "platform-admin",
        LazyApp(f"{_HERE}.platform_admin", "Grant or revoke Platform Admin; issue a setup code.", MANAGE),
    ),
    (
        "sso-link",
        LazyApp(f"{_HERE}.sso_link", "Let people keep a local account when they sign in by SSO.", MANAGE),
    ),
)
