"""Requires a plugin that nobody installed."""

from kernel.sdk import Plugin


class Needs(Plugin):
    name = "needs_missing"
    requires = ("telepathy",)
