"""Which texts of a tree belong together."""

from __future__ import annotations

import numpy as np

from builtin_plugins.rag.trees.clusters import clusters


def test_clusters_hold_what_is_alike() -> None:
    """Rows that point the same way are together; the same rows give the same groups, none above ten."""
    rng = np.random.default_rng(7)
    centres = np.eye(8, dtype=np.float32)[:3]
    rows = np.concatenate([centres] * 5) + rng.normal(0, 0.05, (15, 8)).astype(np.float32)
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    groups = clusters(rows)
    assert groups == clusters(rows)
    assert sorted(at for group in groups for at in group) == list(range(15))
    assert all(len({at % 3 for at in group}) == 1 for group in groups)
    same = np.tile(rows[:1], (300, 1))
    assert max(len(group) for group in clusters(same)) <= 10
    assert clusters(rows[:1]) == [[0]]
