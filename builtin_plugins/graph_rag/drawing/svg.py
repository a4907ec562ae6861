"""A graph as a picture: the entities with the most relations, in the colours of their communities."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT = 1280, 860
_MARGIN = 70
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

    The same graph gives the same picture. The text is escaped: names are what documents say.
    """
    import networkx

    graph = networkx.Graph()
    graph.add_nodes_from(sorted({key for edge in edges for key in edge[:2]}))
    for subject, target, weight in edges:
        before = graph.get_edge_data(subject, target, {"weight": 0.0})["weight"]
        graph.add_edge(subject, target, weight=before + weight)
    degrees = dict(graph.degree(weight="weight"))
    kept = sorted(degrees, key=lambda key: (-degrees[key], key))[:most]
    shown = graph.subgraph(kept)
    places = _places(shown)
    colours = _colours(shown)
    lines = [_line(places, one, two, data["weight"]) for one, two, data in shown.edges(data=True)]
    nodes = [_node(places[key], names.get(key, key), degrees[key], colours[key]) for key in reversed(kept)]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="system-ui, sans-serif" role="img">'
    )
    heading = html.escape(title)
    parts = [
        head,
        f"<title>{heading}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        *lines,
        *nodes,
        f'<text x="24" y="34" font-size="18" fill="#222222">{heading}</text>',
        "</svg>",
    ]
    return Picture("\n".join(parts) + "\n", len(kept), len(lines))


def _places(graph: Any) -> dict[str, tuple[float, float]]:
    """Where each node is, in pixels."""
    import networkx

    if not len(graph):
        return {}
    found = networkx.spring_layout(graph, seed=_SEED, iterations=200, k=2.2 / max(1, len(graph)) ** 0.5)
    xs, ys = zip(*found.values(), strict=True)
    return {key: (_scaled(x, xs, WIDTH), _scaled(y, ys, HEIGHT)) for key, (x, y) in sorted(found.items())}


def _scaled(value: float, values: Sequence[float], size: int) -> float:
    low, high = min(values), max(values)
    share = (value - low) / (high - low) if high > low else 0.5
    return round(_MARGIN + share * (size - 2 * _MARGIN), 1)


def _colours(graph: Any) -> dict[str, str]:
    import networkx

    groups = networkx.community.louvain_communities(graph, seed=_SEED) if graph.edges else [{*graph.nodes}]
    ordered = sorted(groups, key=lambda group: (-len(group), min(group, default="")))
    return {key: _COLOURS[min(at, len(_COLOURS) - 1)] for at, group in enumerate(ordered) for key in group}


def _line(places: Mapping[str, tuple[float, float]], one: str, two: str, weight: float) -> str:
    (x1, y1), (x2, y2) = places[one], places[two]
    width = round(min(4.0, 0.6 + weight * 0.6), 2)
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#b9bfc7" stroke-width="{width}"/>'


def _node(place: tuple[float, float], name: str, degree: float, colour: str) -> str:
    x, y = place
    radius = round(min(16.0, 4 + degree**0.5 * 1.6), 1)
    text = html.escape(_printable(name if len(name) <= 40 else name[:39] + "…"))
    return (
        f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{colour}" fill-opacity="0.85"/>'
        f'<text x="{x}" y="{round(y - radius - 4, 1)}" font-size="12" text-anchor="middle" '
        f'fill="#222222" stroke="#ffffff" stroke-width="3" paint-order="stroke">{text}</text>'
    )


def _printable(text: str) -> str:
    """Without control characters, which XML can't hold."""
    return "".join(char if char.isprintable() else " " for char in text)
