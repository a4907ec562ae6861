"""What a question and its passages have in common, as `answer_without_model` is asked it.

A passage's sentences are prepared for comparison once and cached, as the same few passages are used again.
The cache key includes the passage's id, not just its text: the time of an answer must not reveal whether
somebody else's document says the same.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from builtin_plugins.documents.api import DOUBTFUL, asks
from builtin_plugins.rag.answering.headings import is_value_line
from builtin_plugins.rag.answering.languages import are_alike
from builtin_plugins.rag.answering.quotations import AskedWords, QuotablePassage, QuotableSentence
from builtin_plugins.rag.answering.running_lines import PageLine, running_lines
from builtin_plugins.rag.answering.sentences import split_sentences
from builtin_plugins.rag.answering.words import (
    Stems,
    content_forms,
    content_words,
    count_words,
    forms,
    has_number,
    named_terms,
    spells_out,
)
from builtin_plugins.rag.passages import Passage

MOST_READ = 256
"""Cached passages, of some 30 KB each."""


class ReadSentence(NamedTuple):
    """A sentence and the forms of its content words.

    `context` are those of its heading, of the sentence that opens the paragraph, which says what it is about,
    and of the one before it. `under` is the heading above it. `length` is in words.
    One that `is_doubtful` has a word that was recognized in a picture with little certainty.
    """

    text: str
    start: int
    length: int
    stems: frozenset[str]
    context: frozenset[str]
    is_heading: bool
    under: str
    of_table: bool = False
    is_doubtful: bool = False


def read(passage: Passage) -> tuple[ReadSentence, ...]:
    """The sentences of a passage, in order."""
    return _read(passage.chunk_id, passage.text, passage.language)


@lru_cache(maxsize=MOST_READ)
def _read(_chunk_id: str, text: str, language: str | None) -> tuple[ReadSentence, ...]:
    return tuple(_sentences(text, language))


def _sentences(text: str, language: str | None) -> Iterator[ReadSentence]:
    nothing = frozenset[str]()
    above = before = topic = nothing
    under = ""
    split = split_sentences(text, language)
    ends = [*(part.start for part in split), len(text)][1:]
    for part, end in zip(split, ends, strict=True):
        is_doubtful = DOUBTFUL in text[part.start : end]
        stems, length = content_forms(part.text, language), count_words(part.text)
        if part.is_heading:
            yield ReadSentence(part.text, part.start, length, stems, nothing, True, under, False, is_doubtful)
            under, above, before, topic = part.text, stems, nothing, nothing
            continue
        context = above | before | topic
        yield ReadSentence(
            *(part.text, part.start, length, stems, context, False, under, part.of_table, is_doubtful)
        )
        before, topic = stems, topic or stems


_NAME_JOINTS = re.compile(r"[\W_]+")
_DIGITS = re.compile(r"[0-9]+")
_BETWEEN_DIGITS = re.compile(r"(?<=[0-9])[-_/ .,](?=[0-9])")


def asked_words(question: str, language: str | None) -> AskedWords:
    """A question's content words, and its names, codes and numbers."""
    terms = content_words(question, language) or content_words(question) or content_words(question, "en")
    return AskedWords(question, language, terms, frozenset(named_terms(question)))


def quotable(question: AskedWords, passages: Sequence[Passage]) -> list[QuotablePassage]:
    """The passages, each with the question's words and names that it and its sentences have. A word of the
    document's name is one of each sentence: it says whose they are, and prefers none of them.
    """
    texts, titles = (
        [read(one) for one in passages],
        [_title_forms(one.source, one.language) for one in passages],
    )
    stems = frozenset().union(*titles, *(one.stems for text in texts for one in text))
    meant = _Meant(question, stems, {one.language for one in passages if one.language})
    quotable_passages, running = list[QuotablePassage](), running_lines(_page_lines(passages, texts))
    for number, (passage, text, title) in enumerate(zip(passages, texts, titles, strict=True)):
        own = title.union(*(one.stems for one in text))
        quotable_passages.append(
            QuotablePassage(
                passage,
                words=meant.words(own),
                names=frozenset(one for one in question.names if _has_name(one, passage, own)),
                is_foreign=_is_foreign(question.language, passage.language),
                sentences=[
                    _sentence(one, passage, meant, meant.words(title))
                    for one in text
                    if not (one.is_doubtful or _repeats(one, question) or (number, one.start) in running)
                ],
            )
        )
    return quotable_passages


class _Meant:
    """Which of the question's words stems mean."""

    def __init__(self, question: AskedWords, stems: Iterable[str], languages: Collection[str]) -> None:
        index, self._which = Stems(stems), defaultdict[str, set[int]](set)
        for at, word in enumerate(question.words):
            for form in forms(word, languages):
                for stem in index.meant_by(form):
                    self._which[stem].add(at)
        self._meant = frozenset(self._which)

    def words(self, stems: frozenset[str]) -> frozenset[int]:
        return frozenset(which for one in self._meant & stems for which in self._which[one])


def _page_lines(passages: Sequence[Passage], texts: Sequence[Sequence[ReadSentence]]) -> Iterator[PageLine]:
    """The lines with which sentences begin that have a number, of documents with pages."""
    for number, (passage, sentences) in enumerate(zip(passages, texts, strict=True)):
        for one in sentences if passage.page is not None else ():
            line = passage.text[one.start :].partition("\n")[0]
            page = passage.page_at(one.start)
            if page is not None and has_number(line):
                yield PageLine((number, one.start), passage.document_id, page, line)


def _sentence(
    sentence: ReadSentence, passage: Passage, meant: _Meant, title: frozenset[int]
) -> QuotableSentence:
    own = meant.words(sentence.stems)
    return QuotableSentence(
        sentence.text,
        sentence.start,
        sentence.length,
        own | title,
        own | title | meant.words(sentence.context),
        sentence.is_heading,
        sentence.under,
        passage.page_at(sentence.start),
        sentence.of_table or (bool(own) and is_value_line(sentence.text)),
    )


def _repeats(sentence: ReadSentence, question: AskedWords) -> bool:
    """Whether a sentence only asks the same."""
    return asks(sentence.text) and sentence.stems <= content_forms(
        question.text, question.language
    ) | content_forms(question.text, None)


@lru_cache(maxsize=MOST_READ)
def _title_forms(source: str, language: str | None) -> frozenset[str]:
    """The words of the document's name, which often says what its passages leave out."""
    return content_forms(_NAME_JOINTS.sub(" ", source), language)


def _has_name(name: str, passage: Passage, stems: frozenset[str]) -> bool:
    """Whether a passage has a name, also as an acronym's long form; a code, also by its bare number."""
    if Stems(stems).meant_by(name) or spells_out(f"{passage.source} {passage.text}", name):
        return True
    if not has_number(name):
        return False
    there = f"{passage.source} {passage.text}"
    return _numbers(name) <= _numbers(there) | _numbers(_BETWEEN_DIGITS.sub("", there))


def _numbers(text: str) -> frozenset[str]:
    return frozenset(_DIGITS.findall(text))


def _is_foreign(question_language: str | None, passage_language: str | None) -> bool:
    return (
        question_language is not None
        and passage_language is not None
        and question_language != passage_language
        and not are_alike(question_language, passage_language)
    )
