"""`compress`: a model reads only the sentences that share most words with the question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from builtin_plugins.rag.answering.sentences import split_sentences
from builtin_plugins.rag.answering.words import content_stems, found_in
from builtin_plugins.rag.passages import Passage

KEPT_SHARE = 0.3
MOST_CHARS = 8000


@dataclass(frozen=True, slots=True)
class _Sentence:
    passage: int
    place: int
    text: str
    overlap: float


def compressed(question: str, passages: Sequence[Passage]) -> list[Passage]:
    """The passages, in order, with fewer sentences: at most 30 % of all text and 8000 characters.

    Each keeps at least its best sentence, so that citations mean the same passages as before.
    """
    terms = content_stems(question)
    sentences = [one for at, passage in enumerate(passages) for one in _sentences(terms, at, passage)]
    room = min(MOST_CHARS, int(KEPT_SHARE * sum(len(passage.text) for passage in passages)))
    selection: set[_Sentence] = set()
    by_overlap = sorted(sentences, key=lambda one: (-one.overlap, one.passage))
    for sentence in [*_bests(sentences), *by_overlap]:
        if sentence not in selection and (
            len(sentence.text) <= room or sentence.passage not in {k.passage for k in selection}
        ):
            selection.add(sentence)
            room -= len(sentence.text) + 1
    return [
        _with(passage, [one for one in sentences if one in selection and one.passage == at])
        for at, passage in enumerate(passages)
    ]


def _sentences(terms: list[str], at: int, passage: Passage) -> list[_Sentence]:
    sentences = []
    for place, sentence in enumerate(split_sentences(passage.text, passage.language)):
        stems = content_stems(sentence.text)
        overlap = sum(found_in(word, stems) for word in terms) / len(terms) if terms else 0.0
        sentences.append(_Sentence(at, place, sentence.text, overlap))
    return sentences


def _bests(sentences: Sequence[_Sentence]) -> list[_Sentence]:
    """The best sentence of each passage."""
    best: dict[int, _Sentence] = {}
    for sentence in sentences:
        if sentence.passage not in best or sentence.overlap > best[sentence.passage].overlap:
            best[sentence.passage] = sentence
    return list(best.values())


def _with(passage: Passage, sentences: Sequence[_Sentence]) -> Passage:
    return replace(passage, text="\n".join(one.text for one in sentences)) if sentences else passage
