"""Requires a plugin that is installed and broken."""

from kernel.sdk import Plugin


class Needs(Plugin):
    name = "needs_broken"
    requires = ("fails_at_import",)
