"""Passages without vectors: found by their words, then compared by the meaning of the part that fits best.

They belong to documents that are being read, or to replaced versions. Embedding them competes with reading,
so few are embedded for a question, and of long ones only the sentences with most of its words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, zip_longest
from typing import Final

from builtin_plugins.inference.api import Embedded
from builtin_plugins.rag.answering.sentences import split_sentences
from builtin_plugins.rag.answering.words import content_stems, found_in
from builtin_plugins.rag.filters.binding import BoundFilter
from builtin_plugins.rag.models import KnowledgeBase
from builtin_plugins.rag.questions.naming import with_both_years
from builtin_plugins.rag.services.embedding import embed
from builtin_plugins.vectors.api import VECTORS, Hit, WordQuery, searched_text
from kernel.sdk import Platform

MOST_EMBEDDED: Final = 20
"""Passages without vectors, in all knowledge bases, that are embedded for a question."""
MOST_CHARS: Final = 3_000
"""Characters of these, together: some 200 ms of processor time with multilingual-e5-small in int8."""
_SHORTEST: Final = 80
"""Characters of a passage's excerpt, however long its context is."""


@dataclass(frozen=True)
class BaseHits:
    """The hits of one knowledge base, best first."""

    base: KnowledgeBase
    hits: Sequence[Hit]


async def replaced_passages(
    platform: Platform, bases: Sequence[KnowledgeBase], text: str, documents: BoundFilter
) -> list[BaseHits]:
    """The passages of replaced versions with the most of the question's words."""
    hits_by_base = [
        (base, await _by_words(platform, base, base.earlier_collection, text, documents)) for base in bases
    ]
    return _shared(hits_by_base)


async def unread_passages(
    platform: Platform, bases: Sequence[KnowledgeBase], text: str, documents: BoundFilter
) -> list[BaseHits]:
    """The same of documents that are being read. What has its vector already is left out: searches by meaning
    that begin afterwards find it.
    """
    hits_by_base = []
    for base in bases:
        if base.id in documents.early:
            hits = await _by_words(platform, base, base.reading_collection, text, documents)
            hits_by_base.append((base, await _without_vectors(platform, base, hits)))
    return _shared(hits_by_base)


async def _by_words(
    platform: Platform, base: KnowledgeBase, collection: str, text: str, documents: BoundFilter
) -> list[Hit]:
    query = WordQuery(with_both_years(text), MOST_EMBEDDED, documents.groups(base.id))
    return await platform.resource(VECTORS).search_words(collection, query)


async def _without_vectors(platform: Platform, base: KnowledgeBase, hits: Sequence[Hit]) -> list[Hit]:
    """Passages get their vectors in order, so it suffices to know how many of a document have theirs."""
    store, groups = platform.resource(VECTORS), list(dict.fromkeys(hit.point.group for hit in hits))
    counts = await asyncio.gather(*(store.staged(base.collection, group) for group in groups))
    embedded = dict(zip(groups, counts, strict=True))
    return [hit for hit in hits if hit.point.position >= embedded[hit.point.group]]


def _shared(hits_by_base: Sequence[tuple[KnowledgeBase, Sequence[Hit]]]) -> list[BaseHits]:
    """The best hits, as many from each knowledge base as from any other; at most `MOST_EMBEDDED` in all."""
    in_turn = filter(None, chain.from_iterable(zip_longest(*(hits for _, hits in hits_by_base))))
    ids = {hit.point.id for hit in islice(in_turn, MOST_EMBEDDED)}
    return [BaseHits(base, [hit for hit in hits if hit.point.id in ids]) for base, hits in hits_by_base]


async def with_meaning(
    platform: Platform,
    question: str,
    by_words: Sequence[BaseHits],
    other_hits: Sequence[BaseHits],
    aims: Mapping[str, Embedded],
) -> list[BaseHits]:
    """Hits by words with their cosines, so that they rank as others; without those that are found already.

    Raises ModelUnavailable.
    """
    ids = {hit.point.id for one in other_hits for hit in one.hits}
    new = [replace(one, hits=[hit for hit in one.hits if hit.point.id not in ids]) for one in by_words]
    hits = [hit for one in new for hit in one.hits]
    if not hits:
        return []
    texts = await asyncio.to_thread(excerpts, question, hits)
    text_of = {hit.point.id: text for hit, text in zip(hits, texts, strict=True)}
    measured = []
    for base, own in ((one.base, one.hits) for one in new):
        model = base.embedding_model
        some = [text_of[hit.point.id] for hit in own]
        measured.append(BaseHits(base, await with_cosines(platform, model, aims[model], own, some)))
    return measured


async def with_cosines(
    platform: Platform, model: str, question: Embedded, hits: Sequence[Hit], texts: Sequence[str]
) -> list[Hit]:
    """The same hits with the cosines of these texts of theirs to `question`. Raises ModelUnavailable."""
    import numpy as np

    if not hits:
        return []
    embedded = await embed(platform, model, texts, "passage")
    cosines: list[float] = np.dot(embedded.vectors, question.vectors[0]).tolist()
    return [replace(hit, cosine=cosine) for hit, cosine in zip(hits, cosines, strict=True)]


def excerpts(question: str, hits: Sequence[Hit]) -> list[str]:
    """What is embedded of each passage: all of a short one, else the sentences with most of the question's
    words, both with their context; together at most `MOST_CHARS`, unless contexts are long.
    """
    wholes = [searched_text(hit.point.text, hit.point.payload) for hit in hits]
    share = _share([len(whole) for whole in wholes], MOST_CHARS)
    terms = content_stems(question)
    texts = []
    for hit, whole in zip(hits, wholes, strict=True):
        if len(whole) > share:
            text = hit.point.text
            room = max(_SHORTEST, share - (len(whole) - len(text)))
            whole = searched_text(_best_part(terms, text, room), hit.point.payload)
        texts.append(whole)
    return texts


def _share(lengths: Sequence[int], most: int) -> int:
    """How long each text may be, so that all together have at most `most` characters."""
    left, share = most, most
    for at, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - at)
        if length > share:
            break
        left -= length
    return share


def _best_part(terms: Sequence[str], text: str, room: int) -> str:
    """The sentences in a row with most of the wanted words, in `room` characters; the first of equal ones."""
    pieces = [(start, end, _words_in(terms, text[start:end])) for start, end in _pieces(text, room)]
    best, most = text[:room], 0
    for at, (start, *_) in enumerate(pieces):
        words, last = frozenset[str](), start
        for _, end, more in pieces[at:]:
            if end - start > room:
                break
            words, last = words | more, end
        if len(words) > most:
            best, most = text[start:last], len(words)
    return best.strip()


def _words_in(terms: Sequence[str], text: str) -> frozenset[str]:
    stems = content_stems(text)
    return frozenset(word for word in terms if found_in(word, stems))


def _pieces(text: str, room: int) -> Iterator[tuple[int, int]]:
    """Where the sentences of a text begin and end, with parts of longer ones."""
    starts = [one.start for one in split_sentences(text)]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        for part in range(start, end, room):
            yield part, min(part + room, end)
