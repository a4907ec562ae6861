"""How often a question about a name that no text has is refused, and one about a name that they have, too.

`python -m tests.benchmarks.names [--show]`. `strange`: questions of `data/names.json` about names that the
texts don't have, and those about invented towns and companies with a name that is none of theirs. `known`:
questions of the same file about what the texts have, spelled otherwise. `labelled`: all questions of the sets
of `answer_sets` that a passage answers; FAQs that people wrote where `PLATFORM_BENCH_DOCS` has them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from builtin_plugins.rag.answering.languages import LanguageDetector
from builtin_plugins.rag.answering.subject_names import SubjectName, subject_names
from builtin_plugins.vectors.text import TextIndex
from tests.benchmarks import filings
from tests.benchmarks.answer_sets import Collection, collections
from tests.benchmarks.evaluation_sets import DATA
from tests.benchmarks.language_sets import told

STRANGE = {"latin": "Quelvara", "cyrillic": "Квельвара"}
_SCRIPTS = {"en": "latin", "de": "latin", "es": "latin", "tr": "latin", "ru": "cyrillic"}
_COMPANIES = ("Nokia", "Tesla", "Vandermeer")


class NameSet(NamedTuple):
    """Texts; questions about names that they don't have, about those that they have, and labelled ones."""

    name: str
    texts: Sequence[str]
    strange: Sequence[str] = ()
    known: Sequence[str] = ()
    labelled: Sequence[str] = ()


def name_sets() -> Iterator[NameSet]:
    data = json.loads((DATA / "names.json").read_text(encoding="utf-8"))
    for one in collections():
        own = data.get(one.name, {"strange": [], "known": []})
        yield NameSet(
            one.name,
            one.paragraphs,
            [question for question, _ in own["strange"]] + list(_strange_towns(one)),
            own["known"],
            [case.question for case in one.cases if case.kind == "there"],
        )
    for companies in ("companies", "unseen"):
        made = filings.filings(companies)
        templates = [*filings._ASKED, *filings._ASKED_PLAINLY]
        yield NameSet(
            f"filings {companies}",
            [block.text for one in made for block in one.blocks],
            [one.format(short=name, year=2022, unit="USD") for one in templates for name in _COMPANIES],
            labelled=[one.text for one in filings.questions(made, companies)],
        )


def _strange_towns(one: Collection) -> Iterator[str]:
    language, _, kind = one.name.partition(" ")
    if kind == "towns" and language in _SCRIPTS:
        data = json.loads((DATA / "languages.json").read_text(encoding="utf-8"))
        for aspect in data["aspects"][language]:
            yield from (
                question.format(n=STRANGE[_SCRIPTS[language]], p="", y="", a="")
                for question, _ in aspect["ask"]
            )


class Names:
    """Tells the names of a question that no text has."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._detector, self._index = LanguageDetector(), TextIndex()
        self._index.add(np.arange(len(texts)), told(texts))

    def unknown(self, question: str) -> list[SubjectName]:
        names = subject_names(question, self._detector.of(question))
        return [one for one in names if not self._index.search(" ".join(one.words), 1).size]


def main() -> None:
    print(f"{'set':22}" + "".join(f"{head:>18}" for head in ("strange", "known", "labelled")))
    totals = {"strange": [0, 0], "known": [0, 0], "labelled": [0, 0]}
    for one in name_sets():
        names, row = Names(one.texts), ""
        for kind, questions in (("strange", one.strange), ("known", one.known), ("labelled", one.labelled)):
            refused = [text for text in questions if names.unknown(text)]
            totals[kind][0] += len(refused)
            totals[kind][1] += len(questions)
            row += f"{len(refused):12} of {len(questions):3}"
            if kind != "strange" and "--show" in sys.argv:
                for text in refused:
                    print("   refused:", text, [name.text for name in names.unknown(text)])
            if kind == "strange" and "--show" in sys.argv:
                for text in set(questions) - set(refused):
                    print("   passed:", text)
        print(f"{one.name:22}{row}", flush=True)
    print(f"{'all':22}" + "".join(f"{refused:12} of {count:3}" for refused, count in totals.values()))


if __name__ == "__main__":
    main()
