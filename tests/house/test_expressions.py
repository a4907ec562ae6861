"""No regular expression takes more than linear time on hostile text, unless that text is short."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house import hostile

ROOT = Path(__file__).resolve().parents[2]
# What is slow on long text, and the most that it is ever given.
BOUNDED = {
    "builtin_plugins/documents/markup/from_html.py": {"_UNSEEN": 500},
    "builtin_plugins/graph_rag/extraction/capitals.py": {"_SENTENCE_END": 12},
    "builtin_plugins/manifest_webhooks/validation.py": {"_SECRET_TEXT": 200},
    "builtin_plugins/rag/answering/periods.py": {"_BEFORE": 20},
}
TOO_LONG = 1_000
PLUGINS = sorted(path.parent.relative_to(ROOT) for path in (ROOT / "builtin_plugins").glob("*/__init__.py"))
GROUPS = {
    "kernel": ["kernel", "cli", "builtin_plugins/documents"],
    "plugins": [str(path) for path in PLUGINS if path.name != "documents"],
}


@pytest.mark.parametrize("group", GROUPS)
def test_expressions_are_linear(group: str) -> None:
    """Four times the text takes about four times as long, whatever is repeated in it."""
    command = [sys.executable, "-m", "tests.house.hostile", *GROUPS[group]]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=540, check=True)
    result = json.loads(answer.stdout.splitlines()[-1])
    assert result["tried"] > 20
    slow = {place: found for place, found in result["slow"].items() if not _is_bounded(place)}
    assert slow == {}


def _is_bounded(place: str) -> bool:
    path, _, line = place.partition(":")
    text = (ROOT / path).read_text().splitlines()[int(line) - 1]
    name = text.partition("=")[0].partition(":")[0].strip()
    return BOUNDED.get(path, {}).get(name, TOO_LONG) < TOO_LONG


@pytest.fixture
def clock() -> Iterator[None]:
    """A signal that comes late is ignored afterwards: by default it would end the process of the tests."""
    signal.signal(signal.SIGVTALRM, hostile.stop)
    yield
    signal.signal(signal.SIGVTALRM, signal.SIG_IGN)


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("source", "method"),
    [
        (r"(?:\s*\[\d+\])+", "finditer"),
        (r"\s*[(\[][^()\[\]]*[)\]]\s*$", "sub"),
        (r"(?:[.!?]['\"]*\s+|\n\s*|^\s*)['\"]*$", "search"),
        (r"<!--.*?-->", "sub"),
        (r"(\w+\s?)+:", "match"),
        (r"\s*\w*\s*", "fullmatch"),
    ],
)
def test_slow_expressions_are_seen(source: str, method: str) -> None:
    """Those that were repaired once, and the usual ones: quadratic and exponential."""
    assert hostile.slow_on(re.compile(source), frozenset((method,))) is not None


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("source", "method"),
    [(r"\s*\w*:", "match"), (r"(?<!\s)\s++x", "search"), (r"\w{1,80}@", "finditer"), (r"[ab]+c?", "sub")],
)
def test_linear_expressions_pass(source: str, method: str) -> None:
    """What looks like them and is not: possessive, bounded, or tried at one place."""
    assert hostile.slow_on(re.compile(source), frozenset((method,))) is None
