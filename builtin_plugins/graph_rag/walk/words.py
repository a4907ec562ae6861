"""Words as a walk compares them: folded, cut to a prefix, without function words."""

from __future__ import annotations

from typing import Final

import regex

from builtin_plugins.graph_rag.extraction.mentions import folded
from builtin_plugins.graph_rag.extraction.wordlists import OPENERS, word_set

_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+")
_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー々]+")
_STEM: Final = 6  # letters: "directed", "director" and "directs" are one word; suits most languages
_ASKING: Final = word_set(
    "am are be been being can could did do does had has have having is may might much must s shall should t "
    "was were who whom whose which what when where why how many name named called tell give list long "
    "wer was wann wo wie warum welche welcher welches viele qui que quoi quand comment combien quel quelle "
    "quién qué cuándo dónde cómo cuál chi che quando dove come quale ne kim hangi nerede kaç nasıl"
)
_STOP: Final = frozenset(folded(word) for word in OPENERS | _ASKING)


def content_words(text: str) -> list[str]:
    """The prefixes of content words, in order, each once; pairs of characters if words are not separated."""
    words: dict[str, None] = {}
    for word in _WORD.findall(folded(text)):
        if word.isascii():
            if word not in _STOP:
                words[_stem(word)] = None
        else:
            for part in _parts(word):
                words[part] = None
    return list(words)


def _stem(word: str) -> str:
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    return word[:_STEM]


def _parts(word: str) -> list[str]:
    if not _UNSPACED.search(word):
        return [] if word in _STOP else [_stem(word)]
    parts = [rest[:_STEM] for rest in _UNSPACED.split(word) if rest]
    for run in _UNSPACED.findall(word):
        parts += [run[at : at + 2] for at in range(max(1, len(run) - 1))]
    return parts
