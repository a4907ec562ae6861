"""Where in a document the sentences are that an answer quotes, or cites it for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from builtin_plugins.rag.answering.citation_support import ENOUGH, citations_of, share_of
from builtin_plugins.rag.answering.sentences import Sentence, split_sentences
from builtin_plugins.rag.answering.words import content_stems
from builtin_plugins.rag.passages import Passage, QuotedSpan

_TOKEN = re.compile(r"\w+")
_REST_OF_WORD = re.compile(r"\S*")


def span_of_quote(passage: Passage, start: int, quote: str) -> QuotedSpan | None:
    """Where a quotation that begins at a character of the passage's text is in the document; None if unknown.

    The text may differ from the quotation: rows are quoted with the names of their columns.
    """
    end = None
    if not passage.is_verbatim:
        return None
    for sentence, stop in _sentences(passage):
        begins = sentence.start == start or (end is not None and sentence.start > start)
        if begins and sentence.text in quote:
            end = stop
        elif end is not None:
            break
    return None if end is None else QuotedSpan(passage.char_start + start, passage.char_start + end)


def sentences_cited(text: str, passages: Sequence[Passage]) -> dict[int, list[QuotedSpan]]:
    """For each passage's number, from 1, where in its document the sentences are that it is cited for.

    That is the sentence, or the two in a row, with most of what the answer's sentence says, at least 60 %.
    """
    spans: dict[int, list[QuotedSpan]] = {}
    for sentence, number in citations_of(text):
        if 1 <= number <= len(passages) and content_stems(sentence):
            span = _closest(passages[number - 1], sentence)
            spans.setdefault(number, []).extend([span] if span else [])
    return spans


def _closest(passage: Passage, sentence: str) -> QuotedSpan | None:
    if not passage.is_verbatim:
        return None
    alone = [(one.start, stop) for one, stop in _sentences(passage) if not one.is_heading]
    pairs = [(start, end) for (start, _), (_, end) in pairwise(alone)]
    for spans in (alone, pairs):
        shares = [share_of(passage.text[start:end], sentence) for start, end in spans]
        if shares and max(shares) >= ENOUGH:
            start, end = spans[shares.index(max(shares))]
            return QuotedSpan(passage.char_start + start, passage.char_start + end)
    return None


def _sentences(passage: Passage) -> Iterator[tuple[Sentence, int]]:
    """The sentences of a passage, each with where it ends: what marks the next one is not part of it."""
    split = split_sentences(passage.text, passage.language)
    following = [*(sentence.start for sentence in split), len(passage.text)][1:]
    for sentence, limit in zip(split, following, strict=True):
        yield sentence, sentence.start + _length(passage.text[sentence.start : limit], sentence.text)


def _length(raw: str, text: str) -> int:
    last = next(reversed(_TOKEN.findall(text)), "")
    at = raw.rfind(last) if last else -1
    if at < 0:
        return len(raw.rstrip())
    rest = _REST_OF_WORD.match(raw, at + len(last))
    return rest.end() if rest else len(raw.rstrip())
