"""Makes questions of two hops in other languages: German, where every noun has a capital, and scripts that
have none.

The texts are about invented people, towns and works, built from the templates in
`data/multi_hop_languages.json`. The same seed gives the same set.
"""

from __future__ import annotations

import json
import random
from typing import Any

from tests.benchmarks.evaluation_sets import DATA
from tests.benchmarks.multi_hop import HopQuestion, MultiHopSet

_DATA: dict[str, Any] = json.loads((DATA / "multi_hop_languages.json").read_text(encoding="utf-8"))
LANGUAGES = tuple(_DATA)
_SIZES = {"town": 60, "person": 200, "work": 200}
_LETTERS = {"town": "t", "person": "p", "work": "w"}


def make_in(language: str, style: str, *, seed: int = 1, questions: int = 120) -> MultiHopSet:
    """A set in `language`, its questions `bridge` (two articles answer each) or `single` (one does)."""
    world = _World(_DATA[language], random.Random(seed))
    made = {one.text: one for one in (world.question(style) for _ in range(questions))}
    return MultiHopSet(world.articles, list(made.values()))


class _World:
    def __init__(self, data: dict[str, Any], chance: random.Random) -> None:
        self._data, self._chance = data, chance
        self._titles = {kind: self._several(kind, count) for kind, count in _SIZES.items()}
        self.articles: list[tuple[str, str]] = []
        self._places: dict[str, int] = {}
        self._facts: dict[str, dict[str, str]] = {}
        for kind, titles in self._titles.items():
            for title in titles:
                self._write(kind, title)

    def question(self, style: str) -> HopQuestion:
        form, kind, *facts = self._chance.choice(self._data[style])
        title = self._chance.choice(self._titles[kind])
        needed = [title, *(self._facts[title][fact] for fact in facts)]
        text = form.format(**{_LETTERS[kind]: title})
        return HopQuestion(text, tuple(self._places[one] for one in needed), style)

    def _several(self, kind: str, count: int) -> list[str]:
        found: dict[str, None] = {}
        for _ in range(50 * count):
            found[self._title(kind)] = None
            if len(found) == count:
                break
        return list(found)

    def _title(self, kind: str) -> str:
        if kind != "person":
            return self._joined(kind)
        first, last = self._chance.choice(self._data["first"]), self._joined("last")
        return str(self._data["name"]).format(f=first, l=last)

    def _joined(self, name: str) -> str:
        return "".join(self._chance.choice(part) for part in self._data[name])

    def _write(self, kind: str, title: str) -> None:
        pick = self._chance.choice
        facts = {
            _LETTERS[kind]: title,
            "y": str(self._chance.randint(1890, 2010)),
            "n": str(self._chance.randint(900, 90_000)),
            "r": self._joined("river"),
            "j": pick(self._data["job"]),
            "s": pick(self._titles["person"]),
            "a": pick(self._titles["person"]),
        }
        facts.setdefault("t", pick(self._titles["town"]))
        self._facts[title] = facts
        self._places[title] = len(self.articles)
        self.articles.append((title, pick(self._data["articles"][kind]).format(**facts)))
