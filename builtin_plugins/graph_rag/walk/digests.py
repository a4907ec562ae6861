"""Passages, reduced to the numbers that a walk needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from builtin_plugins.graph_rag.extraction.mentions import Mention
from builtin_plugins.graph_rag.walk.keys import reaches
from builtin_plugins.graph_rag.walk.titles import title_keys
from builtin_plugins.graph_rag.walk.words import content_words

Keys = npt.NDArray[np.int64]
Words = npt.NDArray[np.int32]
_FURTHEST = 65_535


class Digest(NamedTuple):
    """One passage: hashed keys int64 [e], whether each is its title bool [e], its place uint16 [e, 2], and
    hashed words int32 [w].

    The hashes are only valid in this process.
    """

    passage_id: str
    position: int
    keys: Keys
    titles: npt.NDArray[np.bool_]
    places: npt.NDArray[np.uint16]
    words: Words


def digest(
    passage_id: str, position: int, text: str, mentions: Sequence[Mention], document: str | None = None
) -> Digest:
    """A passage of a document; `document` is its title or file name, given for its first passage."""
    titles = title_keys(text, mentions, document)
    places_by_key = {reach.key: (reach.start, reach.end) for reach in reaches(text, mentions)}
    for key in titles:
        places_by_key.setdefault(key, (0, 0))
    places = np.array(list(places_by_key.values()), np.int64).reshape(-1, 2).clip(0, _FURTHEST)
    named = set(titles)
    return Digest(
        passage_id,
        position,
        key_hashes(list(places_by_key)),
        np.array([key in named for key in places_by_key], np.bool_),
        places.astype(np.uint16),
        word_hashes(content_words(text)),
    )


def key_hashes(keys: Sequence[str]) -> Keys:
    """Hashes of keys, int64 [n]."""
    return np.fromiter(map(hash, keys), np.int64, len(keys))


def word_hashes(words: Sequence[str]) -> Words:
    """Hashes of words, int32 [n]; one passage and question in a million have a collision."""
    return key_hashes(words).astype(np.int32)
