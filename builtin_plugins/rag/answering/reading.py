"""Prepares a passage's sentences for comparison with any question, cached as the same few passages are used
again.

The cache key includes the passage's id, not just its text: the time of an answer must not reveal whether
somebody else's document says the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.answering.sentences import Sentence, split_sentences
from builtin_plugins.rag.answering.words import content_forms, words

MOST_READ = 256
"""Cached passages, of some 30 KB each."""


class ReadSentence(NamedTuple):
    """A sentence and its content words.

    `around` adds those of its heading, of the sentence that opens the paragraph, which says what it is about,
    and of the one before it. `under` is the heading above it; `is_first` tells that it is the first sentence
    there. A bare "No." has the words of its heading, as has what follows it there.
    """

    text: str
    start: int
    stems: frozenset[str]
    around: frozenset[str]
    is_heading: bool
    is_row: bool
    under: str = ""
    is_first: bool = False
    is_bare: bool = False
    begun: bool = False
    unended: bool = False

    @property
    def marked(self) -> str:
        """The text, with … where a long sentence was split."""
        if not (self.begun or self.unended):
            return self.text
        return f"{'… ' * self.begun}{self.text}{' …' * self.unended}"


def read(passage: Passage) -> tuple[ReadSentence, ...]:
    """The sentences of a passage, in order."""
    return _read(passage.chunk_id, passage.text, passage.language)


@lru_cache(maxsize=MOST_READ)
def _read(_chunk_id: str, text: str, language: str | None) -> tuple[ReadSentence, ...]:
    return tuple(_sentences(text, language))


def places_of(passage: Passage) -> Mapping[str, Sequence[int]]:
    """The positions of each word of a passage, counted in words."""
    return _places(passage.chunk_id, passage.text)


@lru_cache(maxsize=MOST_READ)
def _places(_chunk_id: str, text: str) -> Mapping[str, Sequence[int]]:
    return places(text)


def places(text: str) -> Mapping[str, Sequence[int]]:
    """The positions of each word of a text."""
    found: dict[str, list[int]] = {}
    for at, word in enumerate(words(text)):
        found.setdefault(word, []).append(at)
    return found


def _sentences(text: str, language: str | None) -> Iterator[ReadSentence]:
    nothing = frozenset[str]()
    above = before = topic = nothing
    under, is_first = "", False
    for one, stems in _with_stems(split_sentences(text, language), language):
        if one.is_heading:
            under, is_first, above, before, topic = one.text, True, stems, nothing, nothing
            yield ReadSentence(one.text, one.start, stems, stems, is_heading=True, is_row=False)
            continue
        is_bare = is_first and not stems
        stems = above if is_bare else stems
        yield ReadSentence(
            text=one.text,
            start=one.start,
            stems=stems,
            around=stems | before | topic | above,
            is_heading=False,
            is_row=one.is_row,
            under=under,
            is_first=is_first,
            is_bare=is_bare,
            begun=one.begun,
            unended=one.unended,
        )
        before, topic, is_first = stems, topic or stems, False


def _with_stems(found: Sequence[Sentence], language: str | None) -> Iterator[tuple[Sentence, frozenset[str]]]:
    """The sentences with their stems. After a heading, one without stems joins the next: "No. It hums"."""
    held: Sentence | None = None
    after_heading = False
    for one in found:
        stems = content_forms(one.text, language)
        if held is not None and not one.is_heading:
            one = one._replace(text=f"{held.text} {one.text}", start=held.start)
        elif held is not None:
            yield held, frozenset()
        held = one if after_heading and not stems else None
        if held is None:
            yield one, stems
        after_heading = one.is_heading
    if held is not None:
        yield held, frozenset()
