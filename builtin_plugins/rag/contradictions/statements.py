"""The sentences of two documents that are the same but for a value or a negation."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from builtin_plugins.rag.answering.contradicting import contradict, tokens_of
from builtin_plugins.rag.answering.sentences import split_sentences
from builtin_plugins.vectors.api import StoredPoint

_FORMULAIC: Final = 60
"""Sentences of a document that begin or end alike; more are entries of a list."""
_ABOUT_ITSELF = re.compile(
    r"version|revision|page|updated|copyright|printed|edition|amended|reviewed|replaces|supersedes|valid|effective"
    r"|seite|stand|fassung|ausgabe|gedruckt|aktualisiert|gültig|ersetzt|überarbeitet"
    r"|édition|révision|imprimé|vigueur|remplace|página|edición|revisión|actualizado|vigor|sustituye"
)
"""Words of sentences that say something about the document itself, such as its date."""
_REFERENCE = re.compile(
    r"\b(?:section|figure|fig|table|chapter|article|paragraph|annex|step|item|abschnitt|abbildung|abb"
    r"|tabelle|kapitel|artikel|absatz|anlage|anhang|ziffer|chapitre|figura|tabla|sección|capítulo|artículo|tableau)"
    r" \d"
)
"""A number that names a place in the document."""


class Statement(NamedTuple):
    """A sentence as it is compared, its place (its passage, and characters of the document), and itself."""

    tokens: tuple[str, ...]
    position: int
    char_start: int
    char_end: int
    text: str


def statements_of(passages: Iterable[StoredPoint]) -> list[Statement]:
    """The sentences of a document that can contradict others: no headings, rows or parts of sentences."""
    statements: dict[tuple[str, ...], Statement] = {}
    read_until = 0
    for passage in passages:
        begin = passage.payload["char_start"]
        sentences = split_sentences(passage.text, passage.payload.get("language"))
        ends = [*(sentence.start for sentence in sentences[1:]), len(passage.text)]
        for sentence, end in zip(sentences, ends, strict=True):
            is_whole = not (sentence.is_heading or sentence.is_row or sentence.begun or sentence.unended)
            if not is_whole or begin + sentence.start < read_until:
                continue
            tokens = tuple(tokens_of(sentence.text))
            stop = begin + sentence.start + len(passage.text[sentence.start : end].rstrip())
            if not any(map(_ABOUT_ITSELF.fullmatch, tokens)) and not _REFERENCE.search(" ".join(tokens)):
                place = (passage.position, begin + sentence.start, stop)
                statements.setdefault(
                    tokens, Statement(tokens, *place, passage.text[sentence.start : stop - begin])
                )
        read_until = max(read_until, passage.payload["char_end"])
    return list(statements.values())


Buckets = dict[tuple[str, ...], list[Statement]]


class ComparableText:
    """A document's statements by how they begin and end, without those that others of its own contradict:
    these are about several things of a kind.
    """

    def __init__(self, statements: Sequence[Statement]) -> None:
        self._tokens = {statement.tokens for statement in statements}
        self._buckets: Buckets = defaultdict(list)
        for statement in statements:
            for key in _keys(statement):
                self._buckets[key].append(statement)
        self.statements = [statement for statement in statements if not self._is_one_of_several(statement)]

    def _is_one_of_several(self, statement: Statement) -> bool:
        near = [self._buckets[key] for key in _keys(statement)]
        if any(len(bucket) > _FORMULAIC for bucket in near):
            return True
        return any(contradict(statement.tokens, one.tokens) for bucket in near for one in bucket)

    def against(self, other: ComparableText) -> Iterator[tuple[Statement, Statement]]:
        """Pairs of statements that contradict each other, in this document's order."""
        theirs = set(other.statements)
        for statement in self.statements:
            if statement.tokens in other._tokens:
                continue
            near = {one: None for key in _keys(statement) for one in other._buckets.get(key, ())}
            differing = [
                one
                for one in near
                if one.tokens not in self._tokens and contradict(statement.tokens, one.tokens)
            ]
            if len(differing) == 1 and differing[0] in theirs:
                yield statement, differing[0]


def _keys(statement: Statement) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Sentences that contradict each other share four words, so that they begin or end with two alike."""
    return ("begins", *statement.tokens[:2]), ("ends", *statement.tokens[-2:])
