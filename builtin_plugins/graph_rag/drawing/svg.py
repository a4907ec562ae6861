"""A graph as a picture: the entities with the most relations, colored by community."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .layout import NodeSpace, placed

_MOST = 60
_SEED = 3
_COLOURS = ("#2f6fab", "#b5532a", "#3b8253", "#8a4f9e", "#a67c00", "#2a8a8a", "#a83e5b", "#5b6270")

Edge = tuple[str, str, float]


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG document, and how much of the graph it shows."""

    svg: str
    entities: int
    relations: int


def draw(names: Mapping[str, str], edges: Sequence[Edge], *, most: int = _MOST, title: str) -> Picture:
    """Draw the `most` entities with the heaviest relations; `names` are their labels by key.

    The same graph gives the same picture. Text is escaped, as names come from documents.
    """
    import networkx

    graph = networkx.Graph()
    graph.add_nodes_from(sorted({key for edge in edges for key in edge[:2]}))
    for subject, target, weight in edges:
        before = graph.get_edge_data(subject, target, {"weight": 0.0})["weight"]
        graph.add_edge(subject, target, weight=before + weight)
    degrees = dict(graph.degree(weight="weight"))
    keys = sorted(degrees, key=lambda key: (-degrees[key], key))[:most]
    subgraph = graph.subgraph(keys)
    labels = {key: _label(names.get(key, key)) for key in keys}
    radii = {key: round(min(16.0, 4 + degrees[key] ** 0.5 * 1.6), 1) for key in keys}
    places, width, height = placed(subgraph, {key: NodeSpace.of(labels[key], radii[key]) for key in keys})
    colours = _colours(subgraph)
    lines = [_line(places, one, two, data["weight"]) for one, two, data in subgraph.edges(data=True)]
    nodes = [_node(places[key], labels[key], radii[key], colours[key]) for key in reversed(keys)]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="system-ui, sans-serif" role="img">'
    )
    heading = html.escape(title)
    parts = [
        head,
        f"<title>{heading}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *lines,
        *nodes,
        f'<text x="24" y="34" font-size="18" fill="#222222">{heading}</text>',
        "</svg>",
    ]
    return Picture("\n".join(parts) + "\n", len(keys), len(lines))


def _colours(graph: Any) -> dict[str, str]:
    import networkx

    groups = networkx.community.louvain_communities(graph, seed=_SEED) if graph.edges else [{*graph.nodes}]
    ordered = sorted(groups, key=lambda group: (-len(group), min(group, default="")))
    return {key: _COLOURS[min(at, len(_COLOURS) - 1)] for at, group in enumerate(ordered) for key in group}


def _line(places: Mapping[str, tuple[float, float]], text: str, two: str, weight: float) -> str:
    (x1, y1), (x2, y2) = places[text], places[two]
    width = round(min(4.0, 0.6 + weight * 0.6), 2)
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#b9bfc7" stroke-width="{width}"/>'


def _node(place: tuple[float, float], label: str, radius: float, colour: str) -> str:
    x, y = place
    return (
        f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{colour}" fill-opacity="0.85"/>'
        f'<text x="{x}" y="{round(y - radius - 4, 1)}" font-size="12" text-anchor="middle" '
        f'fill="#222222" stroke="#ffffff" stroke-width="3" paint-order="stroke">{html.escape(label)}</text>'
    )


def _label(name: str) -> str:
    return _printable(name if len(name) <= 40 else name[:39] + "…")


def _printable(text: str) -> str:
    """Without control characters, which XML can't hold."""
    return "".join(char if char.isprintable() else " " for char in text)
