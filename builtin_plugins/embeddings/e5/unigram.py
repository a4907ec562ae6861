"""SentencePiece's unigram tokenizer (Kudo 2018) as XLM-RoBERTa uses it, over a plain dictionary.

The library `tokenizers` gives the same ids, but takes 250 MB for the 250,000 pieces. The dictionary takes a
fifth of that, and a fraction of a millisecond for a passage: no piece crosses word boundaries, so each word
is split by itself, and recently used words are cached.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from builtin_plugins.embeddings.e5.packed import Vocabulary

_SPACE = "\u2581"
_SPACES = re.compile(" {2,}")
_WORDS = re.compile(f"{_SPACE}?[^{_SPACE}]*")  # the whole text, in parts that begin with a space
_KEPT_WORDS = 20_000  # about 5 MB
_LONGEST_KEPT = 24
"""Characters of a cached word. Longer ones are lines without spaces, as in Chinese, which rarely recur."""
_UNKNOWN_PENALTY = 10.0  # below the least likely piece, as in SentencePiece
_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")


class Unigram:
    """Splits texts into the ids of the most likely pieces."""

    def __init__(self, vocabulary: Vocabulary, most: int) -> None:
        """`most` is the maximum of ids for one text, including its two marks."""
        pieces = {piece.decode(): number for number, piece in enumerate(vocabulary.pieces)}
        for mark in _SPECIAL:  # a document that contains one literally gets its letters, not the mark
            pieces.pop(mark, None)
        self._pieces = pieces
        self._scores = vocabulary.scores
        self._longest = max(map(len, pieces))
        self._unknown = (min(vocabulary.scores) - _UNKNOWN_PENALTY, vocabulary.unknown)
        self._replacements = vocabulary.replacements
        self._begin, self._end = vocabulary.begin, vocabulary.end
        self._most = most
        self._cached_best = lru_cache(_KEPT_WORDS)(self._best)

    def ids(self, text: str) -> list[int]:
        """The ids of a text between its begin and end marks; what exceeds the limit is left out."""
        most_ids = self._most - 2
        # Pieces are short: text that can't be reached within the limit need not be split.
        normal = self._normalized(text[: most_ids * self._longest])
        return [self._begin, *self._split(normal, most_ids), self._end]

    def _split(self, text: str, most_ids: int) -> list[int]:
        ids: list[int] = []
        for word in _WORDS.findall(text):
            if len(ids) >= most_ids:
                break
            ids += self._cached_best(word) if len(word) <= _LONGEST_KEPT else self._best(word)
        return ids[:most_ids]

    def _normalized(self, text: str) -> str:
        plain = unicodedata.normalize("NFKC", text).translate(self._replacements)
        spaced = _SPACES.sub(" ", plain)
        return (spaced if spaced.startswith(" ") else " " + spaced).replace(" ", _SPACE)

    def _best(self, text: str) -> list[int]:
        """The most likely split (Viterbi 1967): at each place its best score and the piece before it."""
        pieces, likely, longest, size = self._pieces, self._scores, self._longest, len(text)
        unknown_score, unknown = self._unknown
        scores = [0.0] + [float("-inf")] * size
        steps = [(0, 0)] * (size + 1)
        for start in range(size):
            reached = scores[start]
            for end in range(start + 1, min(start + longest, size) + 1):
                piece = pieces.get(text[start:end])
                if piece is not None and reached + likely[piece] > scores[end]:
                    scores[end], steps[end] = reached + likely[piece], (piece, start)
            if reached + unknown_score > scores[start + 1]:
                scores[start + 1], steps[start + 1] = reached + unknown_score, (unknown, start)
        return _walked(steps)


def _walked(steps: list[tuple[int, int]]) -> list[int]:
    pieces, at = [], len(steps) - 1
    while at > 0:
        piece, at = steps[at]
        pieces.append(piece)
    return pieces[::-1]
