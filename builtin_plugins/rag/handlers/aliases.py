"""Paths of earlier clients: `/knowledge-base…` for `/knowledge-bases…` (wire-facts 11), marked deprecated."""

from __future__ import annotations

from dataclasses import replace

from kernel.sdk import RouteTable

_PLURAL, _SINGULAR = "/knowledge-bases", "/knowledge-base"


def singular(*tables: RouteTable) -> RouteTable:
    """The same routes under their old paths."""
    aliases = RouteTable("Deprecated paths")
    aliases.routes += [
        replace(
            route,
            path=route.path.replace(_PLURAL, _SINGULAR, 1),
            name=f"{route.name}_singular",
            deprecated=True,
            tag=aliases.tag,
        )
        for table in tables
        for route in table.routes
    ]
    return aliases
