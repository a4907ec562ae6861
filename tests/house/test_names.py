"""A class name means one thing in the tree."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHOWN_TO_CLIENTS = {
    *("ChatMessage", "Deleted", "Enabled", "Explanation", "ModelOut", "RootOut", "SearchRequest"),
    *("ToolDetail", "ToolItem", "ToolList", "ToolsQuery"),
}
"""Two services that answer alike: the names are those of the API's schemas, which clients have."""


def test_class_names_are_unique() -> None:
    """But for private ones, which a reader meets in one file only."""
    found = defaultdict[str, list[str]](list)
    for folder in ("kernel", "builtin_plugins", "cli"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(str(path.relative_to(ROOT)))
    twice = {name: places for name, places in found.items() if len(places) > 1}
    assert set(twice) == SHOWN_TO_CLIENTS, {name: twice[name] for name in twice.keys() - SHOWN_TO_CLIENTS}
