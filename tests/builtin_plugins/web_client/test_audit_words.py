"""The web client has plain words for everything that the audit log says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
WORDS = ROOT / "builtin_plugins/web_client/static/pages/operations/audit-words.js"
RECORDERS = {"audit", "_audit", "_note"}
ACTION = re.compile(r"[a-z_]+(?:\.[a-z_]+)+")
KIND = re.compile(r'\baudit\(\s*(?:\w+,\s*)?"[a-z_.]+",\s*"(\w+)"')


def recorded() -> set[str]:
    """The actions that plugins and the command line write into the log."""
    actions = set[str]()
    for path in (ROOT / "builtin_plugins").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and _name(call.func) in RECORDERS:
                texts = (one.value for one in call.args if isinstance(one, ast.Constant))
                actions.update(text for text in texts if isinstance(text, str) and ACTION.fullmatch(text))
    return actions


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def test_every_action_has_words() -> None:
    text = WORDS.read_text()
    actions = text[text.index("const ACTIONS") : text.index("const KINDS")]
    known = set(re.findall(r"^  ([a-z_]+):", actions, re.MULTILINE))
    actual = recorded()
    assert "source.added" in actual and "rag.knowledge_base.trashed" in actual
    assert {one for one in actual if one.rpartition(".")[2] not in known} == set()


def test_every_kind_has_words() -> None:
    _, kinds = WORDS.read_text().split("const KINDS")
    paths = (path for folder in ("kernel", "builtin_plugins") for path in (ROOT / folder).rglob("*.py"))
    actual = {kind for path in paths for kind in KIND.findall(path.read_text())}
    assert "knowledge_base" in actual
    assert actual - set(re.findall(r"^  (\w+): \{ title", kinds, re.MULTILINE)) == set()
