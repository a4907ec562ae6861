"""The web client has plain words for everything that the audit log says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
WORDS = ROOT / "builtin_plugins/web_client/static/pages/operations/audit-words.js"
RECORDERS = {"audit", "_audit", "_note"}
ACTION = re.compile(r"[a-z_]+(?:\.[a-z_]+)+")


def recorded() -> set[str]:
    """The actions that plugins and the command line write into the log."""
    found = set[str]()
    for path in (ROOT / "builtin_plugins").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and _name(call.func) in RECORDERS:
                texts = (one.value for one in call.args if isinstance(one, ast.Constant))
                found.update(one for one in texts if isinstance(one, str) and ACTION.fullmatch(one))
    return found


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def test_every_action_has_words() -> None:
    text = WORDS.read_text()
    actions = text[text.index("const ACTIONS") : text.index("const KINDS")]
    known = set(re.findall(r"^  ([a-z_]+):", actions, re.MULTILINE))
    actual = recorded()
    assert "source.added" in actual and "rag.knowledge_base.trashed" in actual
    assert {one for one in actual if one.rpartition(".")[2] not in known} == set()
