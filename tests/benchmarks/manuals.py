"""Questions about two manuals that define one thing after the other, each a line below its name.

No weight was fitted on them. Their texts are not kept here: Python's language reference comes with every
interpreter, PostgreSQL's manual with Debian's package `postgresql-doc-15`; without that, its set is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from pydoc_data.topics import topics

from builtin_plugins.documents.blocks import Block, parsed_text
from builtin_plugins.documents.chunking import chunk
from builtin_plugins.documents.markup import from_html
from tests.benchmarks.answer_sets import HELD_OUT, AnswerSet, Labelled
from tests.benchmarks.evaluation_sets import DATA
from tests.benchmarks.language_sets import Asked, LanguageSet

_POSTGRESQL = Path("/usr/share/doc/postgresql-doc-15/html")
_PAGES = ("app-*.html", "runtime-config*.html", "sql-*.html")
_PASSAGE, _REPEATED = 1500, 150


def manuals() -> Iterator[AnswerSet]:
    """The sets whose manual is on this machine."""
    yield _asked("python", ([Block(text)] for _, text in sorted(topics.items())))
    pages = [[Block(text)] for _, text in manual_pages()]
    if pages:
        yield _asked("postgresql", pages)


def manual_pages() -> list[tuple[str, str]]:
    """The names and texts of the pages of PostgreSQL's manual; none if it is not on this machine."""
    pages = sorted(page for pattern in _PAGES for page in _POSTGRESQL.glob(pattern))
    return [(page.name, parsed_text(from_html.parse(page))) for page in pages]


def _asked(name: str, documents: Iterable[Iterable[Block]]) -> AnswerSet:
    """A manual with its questions. Its passages repeat themselves, so none is taken away."""
    questions = json.loads((DATA / "manuals.json").read_text(encoding="utf-8"))[name]
    passages = [one.text for blocks in documents for one in chunk(blocks, _PASSAGE, _REPEATED)]
    asked = [Asked(text, _place(passages, answer), answer) for text, answer in questions["answered"]]
    asked += [Asked(text, -1, "") for text in questions["unanswered"]]
    labelled = [Labelled(one, HELD_OUT, alone=True) for one in asked]
    return AnswerSet(f"{name} manual", LanguageSet("en", passages, asked), labelled)


def _place(passages: list[str], answer: str) -> int:
    """A passage that holds the answer."""
    return next(at for at, text in enumerate(passages) if answer.casefold() in text.casefold())
