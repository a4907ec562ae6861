"""Labelled questions for answers without a model, with the half of the sets that each belongs to.

Weights are chosen on half 0 and reported on half 1; paragraphs, subjects and files are not parted, so that
what was learnt by heart does not help. `articles` are paragraphs about something else each; `subjects` are
three or more about the same thing, so that a question whose paragraph is missing still finds its subject,
those of `unseen` in half 1 alone: no weight was fitted on them, but signs were chosen with their total seen;
`towns` differ in names alone; `single` is one paragraph or sentence, asked for what it says, for what others
say, and for letters without a meaning; `across` asks in English over paragraphs in another language;
`handbooks` are the fictional companies of the evaluation plugin; `support` has questions that nothing answers
beside others about the same passages. FAQs are of `people`. Questions of another set, and letters without a
meaning, are off topic.
"""

from __future__ import annotations

import json
import random
from collections.abc import Collection as Collection_
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from string import ascii_lowercase
from typing import Any, Literal

from builtin_plugins.documents.blocks import Block
from builtin_plugins.documents.chunking import chunk
from builtin_plugins.rag.answering.sentences import split_sentences
from tests.benchmarks.evaluation_sets import DATA
from tests.benchmarks.language_sets import ARTICLE_LANGUAGES, Asked, LanguageSet, articles, towns
from tests.benchmarks.people import faqs

HELD_OUT = 1
"""The half that no weight is chosen on."""

_OFF = 40
"""Questions of another set that a collection is asked."""
_EVERY = 7  # of the questions about towns, which are many and alike
_ASPECTS = 7  # paragraphs about each town
_SINGLES, _WHOLE, _STRANGE = 4, 2, 12
_SYLLABLES = [one + other for one in "bdfgklmnprstvz" for other in "aeiou"]
_PASSAGE, _REPEATED = 1500, 150


@dataclass(frozen=True)
class Labelled:
    """A question of a set, and to which half it belongs.

    `alone` asks it only with the paragraphs as they are; otherwise it is asked without its own as well.
    Where nothing answers it, `asked.paragraph` is -1.
    """

    asked: Asked
    half: int
    alone: bool = False


@dataclass(frozen=True)
class Case:
    """A question as it is asked of a collection.

    `kind` is "there", where the paragraphs `own` answer it with the words `expected` (empty: if one of them
    is quoted), "on", where those are missing or nothing answers, or "off", where nothing is on its topic.
    """

    question: str
    kind: Literal["there", "on", "off"]
    half: int
    own: frozenset[int] = frozenset()
    expected: str = ""

    def is_answered(self, text: str, quoted: Collection_[int]) -> bool:
        """Whether a text answers that quotes these paragraphs."""
        if self.expected:
            return self.expected.casefold() in text.casefold()
        return not self.own.isdisjoint(quoted)


@dataclass(frozen=True)
class Collection:
    """Paragraphs, and what is asked of them."""

    name: str
    group: str
    paragraphs: Sequence[str]
    cases: Sequence[Case]


@dataclass(frozen=True)
class AnswerSet:
    name: str
    collection: LanguageSet
    questions: list[Labelled]


def collections() -> Iterator[Collection]:
    sets = {one.name: one for one in answer_sets()}
    for name, one in sets.items():
        cases = list(_cases(one))
        if name.endswith((" articles", " subjects")):
            other = (
                name.replace("articles", "towns")
                if "articles" in name
                else name.replace("subjects", "articles")
            )
            cases += [Case(each.asked.text, "off", each.half) for each in sets[other].questions[:_OFF]]
        yield Collection(name, _group(name), one.collection.paragraphs, cases)
    nothing = nonsense()
    yield Collection("nonsense", "nonsense", nothing.collection.paragraphs, list(_cases(nothing)))
    yield from _people()


def _cases(one: AnswerSet) -> Iterator[Case]:
    nowhere: Literal["on", "off"] = "off" if "single" in one.name or one.name == "nonsense" else "on"
    for each in one.questions:
        asked, own = each.asked, frozenset({each.asked.paragraph} - {-1})
        if own:
            yield Case(asked.text, "there", each.half, own, asked.expected)
        if not own or not each.alone:
            yield Case(asked.text, "on" if own else nowhere, each.half, own)


def _people() -> Iterator[Collection]:
    """FAQs, each asked its own questions, and those of another or of articles in its language."""
    known = list(faqs())
    others = {one.name: [text for text, _ in one.questions] for one in known}
    for one in known:
        cases = list[Case]()
        for number, (text, own) in enumerate(one.questions):
            cases += [Case(text, "there", number % 2, own), Case(text, "on", number % 2, own)]
        strange = (
            others.get("python" if one.name == "debian en" else "debian en", [])
            if one.language == "en"
            else []
        )
        if one.language in ARTICLE_LANGUAGES:
            strange = [*strange, *(asked.text for asked in articles(one.language).questions)]
        cases += [Case(text, "off", number % 2) for number, text in enumerate(strange[: 2 * _OFF])]
        yield Collection(f"faq {one.name}", f"faq {one.name}", one.passages, cases)


def _group(name: str) -> str:
    """Sets that are reported together: a language's paragraphs about something else each, and those alike."""
    kind = name.split(" ")[1] if " " in name else name
    return (
        f"{name[:2]} paragraphs"
        if kind in ("articles", "towns")
        else kind
        if kind in ("single", "across")
        else name
    )


def answer_sets() -> Iterator[AnswerSet]:
    for language in ARTICLE_LANGUAGES:
        found = articles(language)
        asked = [Labelled(one, one.paragraph % 2) for one in found.questions]
        yield AnswerSet(f"{language} articles", found, asked)
        yield subjects(language)
        yield AnswerSet(f"{language} towns", *_some_towns(language, language))
        yield from (single(language, place) for place in range(_SINGLES))
    for language in ("de", "zh"):
        yield AnswerSet(f"en-{language} across", *_some_towns("en", language))
    yield unseen()
    yield from (handbook("brattvik"), handbook("nordlys"), unanswered())


def subjects(language: str) -> AnswerSet:
    return AnswerSet(f"{language} subjects", *_subjects(language, "subjects.json", halves=(0, 1)))


def unseen() -> AnswerSet:
    return AnswerSet("de unseen", *_subjects("de", "subjects_unseen.json", halves=(HELD_OUT, HELD_OUT)))


def _subjects(language: str, file: str, *, halves: tuple[int, int]) -> tuple[LanguageSet, list[Labelled]]:
    """`halves` are those that every first and every second subject belongs to."""
    entries = json.loads((DATA / file).read_text(encoding="utf-8"))[language]
    paragraphs, asked = list[str](), list[Labelled]()
    for number, subject in enumerate(entries):
        for entry in subject["paragraphs"]:
            place = len(paragraphs)
            asked += [
                Labelled(Asked(text, place, answer), halves[number % 2]) for text, answer in entry["ask"]
            ]
            paragraphs.append(entry["text"])
    return LanguageSet(language, paragraphs, [one.asked for one in asked]), asked


def single(language: str, place: int) -> AnswerSet:
    """A knowledge base of one paragraph, or of one sentence: nothing in it can be compared with anything."""
    found, half = articles(language), place % 2
    text = found.paragraphs[place]
    own = [one for one in found.questions if one.paragraph == place]
    if place >= _WHOLE:
        own = own[:1]
        text = next(one.text for one in split_sentences(text, language) if own[0].expected in one.text)
    elsewhere = [one.text for one in found.questions if one.paragraph % 2 == half and one.paragraph != place]
    strange = [*elsewhere[:_STRANGE], *_meaningless(random.Random(100 + place), 2)]
    asked = [*(replace(one, paragraph=0) for one in own), *(Asked(text, -1, "") for text in strange)]
    collection = LanguageSet(language, [text], asked)
    return AnswerSet(
        f"{language} single {place}", collection, [Labelled(one, half, alone=True) for one in asked]
    )


def _some_towns(asking: str, language: str) -> tuple[LanguageSet, list[Labelled]]:
    """Some of the questions about towns, asked in one language over paragraphs in another."""
    collection, worded = towns(language), towns(asking).questions
    pairs = list(zip(collection.questions, worded, strict=True))[::_EVERY]
    return collection, [
        Labelled(replace(own, text=other.text), own.paragraph % _ASPECTS % 2) for own, other in pairs
    ]


def handbook(name: str) -> AnswerSet:
    """A folder of documents, cut as a knowledge base cuts them."""
    folder, paragraphs, files = DATA / name, list[str](), list[int]()
    paths = sorted(one for one in folder.iterdir() if one.suffix in (".md", ".csv") and one.stem != "README")
    for number, path in enumerate(paths):
        text = path.read_text(encoding="utf-8")
        text = text.replace(",", "\t") if path.suffix == ".csv" else text
        for piece in chunk([Block(text)], _PASSAGE, _REPEATED):
            paragraphs.append(piece.text)
            files.append(number)
    asked = []
    for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        entry: dict[str, Any] = json.loads(line)
        answers = entry.get("answers", [])
        passages = entry.get("passages", answers[:1])
        places = [at for at, text in enumerate(paragraphs) if any(_holds(text, one) for one in passages)]
        if len(passages) == 1 and places:
            asked.append(Labelled(Asked(entry["question"], places[0], answers[0]), files[places[0]] % 2))
        elif entry.get("unanswerable"):
            asked.append(Labelled(Asked(entry["question"], -1, ""), len(asked) % 2, alone=True))
    return AnswerSet(name, LanguageSet("en", paragraphs, [one.asked for one in asked]), asked)


def nonsense() -> AnswerSet:
    """Letters without a meaning, asked of English articles: at random, in syllables, and as keys lie."""
    asked = [Labelled(Asked(text, -1, ""), 1, alone=True) for text in _meaningless(random.Random(7), 40)]
    return AnswerSet("nonsense", articles("en"), asked)


def _meaningless(chance: random.Random, times: int) -> list[str]:
    texts = list[str]()
    for _ in range(times):
        count = chance.randint(2, 6)
        made = (
            ["".join(chance.choices(ascii_lowercase, k=chance.randint(3, 9))) for _ in range(count)],
            ["".join(chance.choices(_SYLLABLES, k=chance.randint(2, 4))) for _ in range(count)],
            chance.choices(["asdf", "qwer", "zxcv", "hjkl", "uiop", "mnbv", "poiu"], k=count),
        )
        texts += [" ".join(words) for words in made]
    return texts


def _holds(text: str, wanted: str) -> bool:
    return " ".join(wanted.split()) in " ".join(text.split()) or wanted.replace(",", "\t") in text


def unanswered() -> AnswerSet:
    """Questions beside which there are others, about the same passages, that nothing answers."""
    data = json.loads((DATA / "support.json").read_text(encoding="utf-8"))
    places = {name: at for at, name in enumerate(data["passages"])}
    asked = [
        Labelled(
            Asked(entry["question"], places[entry["passages"][0]] if entry["answered"] else -1, ""),
            int(entry["split"] == "check"),
            alone=True,
        )
        for entry in data["questions"]
    ]
    collection = LanguageSet("en", list(data["passages"].values()), [one.asked for one in asked])
    return AnswerSet("support", collection, asked)
