"""Whether the passages that an answer cites contain what its sentences say, by their words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.answering.sentences import split_sentences
from builtin_plugins.rag.answering.words import content_stems, found_in, named_terms, stem, words

_CITED = re.compile(r"(?:\s*\[\d+\])+")
_NUMBER = re.compile(r"\d+")
_ENOUGH = 0.6


def count_citations(text: str, passages: Sequence[Passage]) -> tuple[int, int]:
    """How many citations ``[n]`` there are, and how many passages contain what the sentence before says.

    A passage does when it has six of ten of the sentence's content words, and all of its names and numbers.
    """
    cited = supported = begin = 0
    for found in _CITED.finditer(text):
        sentence = _last_sentence(text[begin : found.start()])
        for number in {int(one) for one in _NUMBER.findall(found.group())}:
            cited += 1
            supported += 1 <= number <= len(passages) and says(passages[number - 1].text, sentence)
        begin = found.end()
    return cited, supported


def says(passage: str, sentence: str) -> bool:
    """Whether a passage contains what a sentence says."""
    wanted = content_stems(sentence)
    there = content_stems(passage)
    stems = {stem(word) for word in words(passage)}
    if not all(found_in(name, stems) for name in named_terms(sentence)):
        return False
    return sum(found_in(word, there) for word in wanted) >= _ENOUGH * len(wanted)


def _last_sentence(segment: str) -> str:
    sentences = split_sentences(segment.strip(" .\n") + ".")
    return sentences[-1].text if sentences else segment
