"""Prints how often the right passage is found in documents that differ in little but names and years.

`python -m tests.benchmarks.reports`. Three sets: annual reports of eight invented companies over three years,
whose passages say "the company" and share most of their text; the public set `brattvik`, in short passages;
PostgreSQL's manual, if Debian's `postgresql-doc-15` is here. Each row gives the share of questions whose
passage comes first, and is among the first five: without and with the words of what its document is about,
and with the headings above the passage, too. By both, documents that the question names come first.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from builtin_plugins.documents.api import Block, Heading, Sections, chunk, subject_of
from builtin_plugins.documents.markup import from_html
from builtin_plugins.embeddings.catalog import MODELS
from builtin_plugins.embeddings.engines.base import EmbeddingEngine
from builtin_plugins.embeddings.settings import EmbeddingsSettings
from builtin_plugins.rag.questions.naming import CANDIDATES
from builtin_plugins.rag.services.loading import SECTIONS, context_of
from builtin_plugins.vectors.api import CONTEXT, StoredPoint, searched_text
from builtin_plugins.vectors.dense import DenseIndex
from builtin_plugins.vectors.fusion import hybrid, weight_for
from builtin_plugins.vectors.text import TextIndex
from tests.benchmarks.evaluation_sets import DATA
from tests.benchmarks.long_reports import named_first

POSTGRESQL = Path("/usr/share/doc/postgresql-doc-15/html")
PAGES = ("app-*.html", "runtime-config*.html", "sql-*.html")
COMPANIES = ("Halvorsen", "Brightwater", "Cordell", "Aurum", "Pelham", "Northgate", "Vantor", "Ostrava")
YEARS = (2021, 2022, 2023)
FACTS = {
    "Net sales were {} million, which was more than in the year before.": "What was {}'s revenue in {}?",
    "At the end of the year we employed {} people.": "How many people did {} employ at the end of {}?",
    "We spent {} million on research and development.": "How much did {} spend on research in fiscal {}?",
    "Capital expenditures came to {} million.": "What were the capital expenditures of {} in FY{}?",
    "Total debt amounted to {} million at the date of the balance sheet.": "What debt had {} at year end {}?",
    "The company paid dividends of {} million.": "How much did {} pay in dividends for {}?",
}
BOILERPLATE = (
    "Our results depend on demand, prices of raw materials and exchange rates, which we can't influence.",
    "New products of competitors may make ours obsolete sooner than we expect, and we may fail to follow.",
    "A failure of our computers, or an attack on them, may interrupt production for an unknown time.",
    "Laws on the environment may force us to spend more than we have planned, or to close a factory.",
    "We believe that our liquidity will be enough for the next twelve months and for what comes after.",
    "Estimates and assumptions of the management affect the amounts reported; actual results may differ.",
)


class CutPassage(NamedTuple):
    """A passage, and the headings above it."""

    text: str
    sections: Sections = ()


class Documents(NamedTuple):
    """Documents as their names and passages, and questions with parts of the passages that answer them."""

    name: str
    documents: Sequence[tuple[str, Sequence[CutPassage]]]
    questions: Sequence[tuple[str, int | None, Sequence[str]]]
    """A question, the document that answers it if it is only one, and parts of the right passages."""


def reports() -> Documents:
    chance = random.Random(3)
    documents: list[tuple[str, list[CutPassage]]] = []
    questions: list[tuple[str, int, list[str]]] = []
    for company in COMPANIES:
        for year in YEARS:
            pages = [
                f"ANNUAL REPORT\n\n{company.upper()} INC.\n\nFor the fiscal year ended December 31, {year}"
            ]
            for fact, question in FACTS.items():
                figure = f"{chance.randint(1000, 9999):,}"
                pages.append("\n\n".join((fact.format(figure), *chance.sample(BOILERPLATE, 4))))
                questions.append((question.format(company, year), len(documents), [figure]))
            pages += [f"{company} in {year}\n\n" + "\n\n".join(BOILERPLATE[:3])] * 2
            documents.append((f"{len(documents)}.pdf", [*map(CutPassage, pages)]))
    return Documents("invented reports", documents, questions)


def brattvik() -> Documents:
    folder = DATA / "brattvik"
    texts = {file.name: file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.md"))}
    documents = [
        (name, _cut([_marked(text)], 400, 40)) for name, text in texts.items() if name != "README.md"
    ]
    lines = (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    asked = [json.loads(line) for line in lines]
    return Documents(
        "brattvik", documents, [(one["question"], None, one.get("passages", [])) for one in asked]
    )


def manual() -> Iterator[Documents]:
    pages = sorted(page for pattern in PAGES for page in POSTGRESQL.glob(pattern))
    documents = [(page.name, _cut(from_html.parse(page), 1500, 150)) for page in pages]
    asked = json.loads((DATA / "manuals.json").read_text(encoding="utf-8"))
    if documents:
        yield Documents(
            "PostgreSQL's manual", documents, [(question, None, [part]) for question, part in asked]
        )


def _cut(blocks: Iterable[Block], size: int, overlap: int) -> list[CutPassage]:
    return [CutPassage(piece.text, piece.sections) for piece in chunk(blocks, size, overlap)]


def _marked(text: str) -> Block:
    """A text in Markdown with its headings."""
    found = re.finditer(r"^(#+) (.+)$", text, re.MULTILINE)
    return Block(text, headings=[Heading(len(one[1]), one[2], one.start()) for one in found])


def rows(given: Documents, engine: EmbeddingEngine) -> Iterator[str]:
    passages = [(at, one) for at, (_, all_of_it) in enumerate(given.documents) for one in all_of_it]
    right = [
        {
            number
            for number, (document, one) in enumerate(passages)
            if only in (None, document) and any(part.casefold() in one.text.casefold() for part in parts)
        }
        for _, only, parts in given.questions
    ]
    asked = [
        (question[0], ids) for question, ids in zip(given.questions, right, strict=True) if 0 < len(ids) < 6
    ]
    vectors = engine.encode([MODELS[0].prefixes["query"] + question for question, _ in asked])
    known = [subject_of(name, (one.text for one in all_of_it)) for name, all_of_it in given.documents]
    for title, has_subject, has_sections in (
        ("without", False, False),
        ("subject", True, False),
        ("sections", True, True),
    ):
        points = [
            _point(at, one, known[at] if has_subject else "", one.sections if has_sections else ())
            for at, one in passages
        ]
        near, worded = DenseIndex(engine.dimension), TextIndex()
        labels = np.arange(len(passages))
        texts = [searched_text(point.text, point.payload) for point in points]
        near.add(labels, engine.encode([MODELS[0].prefixes["passage"] + text for text in texts]))
        worded.add(labels, texts)
        figures = np.array([_places(near, worded, points, *one) for one in zip(asked, vectors, strict=True)])
        shares = "".join(f"{(figures[:, leg] < most).mean():8.3f}" for leg in range(3) for most in (1, 5))
        yield f"{given.name:20}{title:>9}{len(passages):8}{len(asked):6}{shares}"


def _point(document: int, passage: CutPassage, subject: str, sections: Sections) -> StoredPoint:
    payload = {CONTEXT: context_of(subject, sections), SECTIONS: sections}
    return StoredPoint(f"{document} {id(passage)}", str(document), 0, passage.text, payload)


def _places(
    near: DenseIndex,
    worded: TextIndex,
    points: Sequence[StoredPoint],
    asked: tuple[str, set[int]],
    vector: np.ndarray,
) -> tuple[int, ...]:
    """The place of the right passage, from 0, by words, by vectors, and by both."""
    question, right = asked
    dense, text = partial(near.search, vector), partial(worded.search, question)
    model = MODELS[0]
    weight = weight_for(question, model.meaning)
    both = hybrid(dense, text, CANDIDATES, weight=weight, unrelated=model.unrelated)
    lists = (text(10).labels, dense(10).labels, named_first(question, both, points))
    return tuple(next((at for at, label in enumerate(one.tolist()) if label in right), 99) for one in lists)


def main() -> None:
    legs = "".join(f"{leg + ' 1':>8}{leg + ' 5':>8}" for leg in ("words", "vec", "both"))
    print(f"{'set':20}{'context':>9}{'passages':>8}{'asked':>6}{legs}")
    engine = MODELS[0].load(EmbeddingsSettings())
    for given in (reports(), brattvik(), *manual()):
        for row in rows(given, engine):
            print(row, flush=True)


if __name__ == "__main__":
    main()
