"""Whether and where cited passages contain what an answer's sentences say, by comparing words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from operator import itemgetter

from builtin_plugins.rag.answering.sentences import split_sentences
from builtin_plugins.rag.answering.words import content_stems, found_in, named_terms, stem, words
from builtin_plugins.rag.passages import Passage

_CITED = re.compile(r"\[\d+\](?:\s*\[\d+\])*")
_NUMBER = re.compile(r"\d+")
ENOUGH = 0.6
"""The least share of a sentence's content that supports it."""


def count_citations(text: str, passages: Sequence[Passage]) -> tuple[int, int]:
    """How many citations ``[n]`` there are, and how many of the passages contain what the sentence before
    says.

    That is, at least 60 % of the sentence's content words, and all its names and numbers.
    """
    cited = supported = 0
    for sentence, number in citations_of(text):
        cited += 1
        supported += 1 <= number <= len(passages) and says(passages[number - 1].text, sentence)
    return cited, supported


def pages_cited(text: str, passages: Sequence[Passage]) -> dict[int, int | None]:
    """For passages over several pages, the page with what they are first cited for, if it is found."""
    pages_by_number = dict[int, int | None]()
    for sentence, number in citations_of(text):
        passage = passages[number - 1] if 1 <= number <= len(passages) else None
        if passage is None or not passage.pages or number in pages_by_number or not content_stems(sentence):
            continue
        page, share = max(
            ((page, share_of(part, sentence)) for page, part in passage.by_page()), key=itemgetter(1)
        )
        if share >= ENOUGH:
            pages_by_number[number] = page
    return pages_by_number


def says(passage: str, sentence: str) -> bool:
    """Whether a passage contains what a sentence says."""
    return share_of(passage, sentence) >= ENOUGH


def share_of(passage: str, sentence: str) -> float:
    """The share of a sentence's content in a passage; 0 if one of its names is missing."""
    terms = content_stems(sentence)
    there = content_stems(passage)
    stems = {stem(word) for word in words(passage)}
    if not all(found_in(name, stems) for name in named_terms(sentence)):
        return 0.0
    return sum(found_in(word, there) for word in terms) / len(terms) if terms else 1.0


def citations_of(text: str) -> Iterator[tuple[str, int]]:
    """Each citation: the sentence before it, and its number."""
    begin = 0
    for citation in _CITED.finditer(text):
        sentence = _last_sentence(text[begin : citation.start()])
        for number in {int(one) for one in _NUMBER.findall(citation.group())}:
            yield sentence, number
        begin = citation.end()


def _last_sentence(segment: str) -> str:
    sentences = split_sentences(segment.strip(" .\t\n") + ".")
    return sentences[-1].text if sentences else segment
