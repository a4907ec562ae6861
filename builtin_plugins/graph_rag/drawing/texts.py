"""The graph of some texts, drawn without a platform."""

from __future__ import annotations

from collections.abc import Mapping

from ..building.documents import build
from ..building.passages import cut
from ..building.rule_engine import rules
from .svg import Edge, Picture, draw


def draw_texts(texts: Mapping[str, str], *, most: int, title: str) -> Picture:
    """Find entities by rules, and draw how the texts, by name, relate them."""
    names: dict[str, str] = {}
    edges: list[Edge] = []
    for name, text in texts.items():
        built = build(rules(), cut(name, text), relationships=True)
        for entity in built.entities:
            names.setdefault(entity.key, entity.name)
        edges += [(one.link.subject, one.link.object, one.weight) for one in built.relations]
    return draw(names, edges, most=most, title=title)
