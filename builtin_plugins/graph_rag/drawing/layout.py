"""Lays out the nodes of a picture: unconnected parts side by side, without overlapping labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_SEED = 3
_LETTER = 6.8  # pixels of a Latin letter
_LINE = 16.0
_GAP = 10.0
_EDGE = 95.0  # approximate pixels between neighbors
_WIDEST = 1_200.0
_HEAD = 60.0
_MARGIN = 24.0
_ROUNDS = 300

Points = npt.NDArray[np.float64]
Place = tuple[float, float]


class NodeSpace(NamedTuple):
    """The space of a node and the label above it, relative to the node's center."""

    half_width: float
    above: float
    below: float

    @classmethod
    def of(cls, label: str, radius: float) -> NodeSpace:
        """The box of a node with this radius."""
        letters = sum(1.0 if char < "\u2e80" else 1.8 for char in label)
        return cls(max(radius, letters * _LETTER / 2), radius + _LINE, radius)


def placed(graph: Any, boxes: Mapping[str, NodeSpace]) -> tuple[dict[str, Place], int, int]:
    """The center of each node in pixels, and the picture's width and height; deterministic."""
    import networkx

    parts = sorted(networkx.connected_components(graph), key=lambda part: (-len(part), min(part)))
    places: dict[str, Place] = {}
    x, y, height, width = _MARGIN, _HEAD, 0.0, 0.0
    for part in parts:
        keys = sorted(part)
        points, size = _part(graph.subgraph(keys), keys, [boxes[key] for key in keys])
        if x > _MARGIN and x + size[0] > _WIDEST:
            x, y, height = _MARGIN, y + height + 2 * _GAP, 0.0
        for key, (left, top) in zip(keys, points.tolist(), strict=True):
            places[key] = (round(x + left, 1), round(y + top, 1))
        x, height = x + size[0] + 3 * _GAP, max(height, size[1])
        width = max(width, x)
    return places, round(max(width, 640.0) + _MARGIN), round(y + height + _MARGIN)


def _part(graph: Any, keys: Sequence[str], boxes: Sequence[NodeSpace]) -> tuple[Points, Place]:
    """Positions of a connected part, relative to its upper left corner, and its size."""
    import networkx

    if len(keys) > 1:
        layout = networkx.spring_layout(graph, seed=_SEED, iterations=200)
        points = np.array([layout[key] for key in keys], np.float64)
        points = (points - points.min(0)) / max(float(np.ptp(points, axis=0).max()), 1e-9)
        points *= _EDGE * len(keys) ** 0.5 * np.array([1.5, 1.0])
    else:
        points = np.zeros((1, 2))
    points = _apart(points, boxes)
    left = min(point[0] - box.half_width for point, box in zip(points, boxes, strict=True))
    top = min(point[1] - box.above for point, box in zip(points, boxes, strict=True))
    points = points - [left, top]
    right = max(point[0] + box.half_width for point, box in zip(points, boxes, strict=True))
    bottom = max(point[1] + box.below for point, box in zip(points, boxes, strict=True))
    return points, (float(right), float(bottom))


def _apart(points: Points, boxes: Sequence[NodeSpace]) -> Points:
    """Push overlapping boxes apart, each pair in the shorter direction, until none overlap."""
    points = points.copy()
    for _ in range(_ROUNDS):
        moved = False
        for left_at, right_at in combinations(range(len(boxes)), 2):
            first, second = boxes[left_at], boxes[right_at]
            across, down = points[right_at] - points[left_at]
            wide = first.half_width + second.half_width + _GAP - abs(across)
            high = (first.below + second.above if down >= 0 else first.above + second.below) - abs(down)
            if wide <= 0 or high <= 0:
                continue
            moved = True
            axis, push = (0, wide) if wide < high else (1, high)
            away = push / 2 + 0.5 if (across, down)[axis] >= 0 else -push / 2 - 0.5
            points[left_at][axis] -= away
            points[right_at][axis] += away
        if not moved:
            break
    return points
