"""How much of a question each sentence of a passage contains."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from builtin_plugins.graph_rag.walk.words import content_words

_END = re.compile(r"(?<=[.!?])[\"'”’»)\]]*\s+(?=[^\Wa-z])|[。！？؟۔।]|\n+")
_MOST_CHARS = 8_192


def sentence_shares(text: str, question: Sequence[str], places: Sequence[int]) -> npt.NDArray[np.float64]:
    """For each place in `text`, the share (0 to 1) of the question's words in its sentence."""
    text = text[:_MOST_CHARS]
    starts = [0, *(match.end() for match in _END.finditer(text))]
    words = set(question)
    share_by_sentence: dict[int, float] = {}
    shares = np.zeros(len(places))
    for at, place in enumerate(places):
        number = bisect_right(starts, place) - 1
        if number not in share_by_sentence:
            end = starts[number + 1] if number + 1 < len(starts) else len(text)
            shared = words.intersection(content_words(text[starts[number] : end]))
            share_by_sentence[number] = len(shared) / max(1, len(words))
        shares[at] = share_by_sentence[number]
    return shares
