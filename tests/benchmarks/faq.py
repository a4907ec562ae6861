"""Real questions over real text, each answered by one passage: Perl's FAQ among Perl's manuals.

The texts are not ours, so they are read from where they are installed: Debian's package `perl-doc`, or the
folder `PLATFORM_BENCH_PODS`. A question is a heading of the FAQ as its authors wrote it; what answers it is
the first passage under that heading, which is taken out of it. The other passages are those of the manuals,
cut as documents are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from builtin_plugins.documents.blocks import Block
from builtin_plugins.documents.chunking import chunk
from tests.benchmarks.evaluation_sets import EvaluationSet, Question

_SIZE = 1_500
_LEAST = 200
_MOST_OTHERS = 4_000
_HEADING = re.compile(r"^=head2 (.+\?)$", re.MULTILINE)
_COMMAND = re.compile(r"^=\w.*$", re.MULTILINE)
_FORMATTED = re.compile(r"[A-Z]<<? ?([^<>]*?) ?>?>")


def folder() -> Path | None:
    named = os.environ.get("PLATFORM_BENCH_PODS")
    places = [Path(named)] if named else sorted(Path("/usr/share/perl").glob("*/pod"))
    return next((place for place in places if (place / "perlfaq4.pod").exists()), None)


def load(place: Path) -> EvaluationSet:
    passages: list[str] = []
    questions: list[Question] = []
    for path in sorted(place.glob("perlfaq[1-9].pod")):
        for heading, answer in _sections(path.read_text(encoding="utf-8", errors="replace")):
            parts = _parts(answer)
            if parts and len(parts[0]) >= _LEAST:
                questions.append(Question(heading, {len(passages): 1}))
                passages += parts
    others = [
        part
        for path in sorted(place.glob("perl[!f]*.pod"))
        if not path.name.endswith("delta.pod")
        for part in _parts(_plain(path.read_text(encoding="utf-8", errors="replace")))
    ]
    step = max(1, len(others) // _MOST_OTHERS)
    return EvaluationSet("perlfaq", passages + others[::step], questions)


def _sections(text: str) -> Iterator[tuple[str, str]]:
    found = list(_HEADING.finditer(text))
    for at, heading in enumerate(found):
        after = text.find("\n=head1", heading.end())
        ends = [len(text) if after < 0 else after]
        ends += [found[at + 1].start()] if at + 1 < len(found) else []
        yield _plain(heading[1]).strip(), _plain(text[heading.end() : min(ends)])


def _plain(text: str) -> str:
    while (fewer := _FORMATTED.sub(r"\1", text)) != text:
        text = fewer
    return _COMMAND.sub("", text)


def sections(path: Path) -> list[tuple[str, str]]:
    """The questions of one file of the FAQ, each with its whole answer."""
    return list(_sections(path.read_text(encoding="utf-8", errors="replace")))


def plain(path: Path) -> str:
    return _plain(path.read_text(encoding="utf-8", errors="replace"))


def _parts(text: str) -> list[str]:
    return [one.text for one in chunk([Block(text.strip())], _SIZE, 0)] if text.strip() else []
