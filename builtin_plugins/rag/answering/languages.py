"""The language of a question or a document, by py3langid.

Its model is packed, and takes half a second and 75 MB to unpack. That is done once: every process maps the
unpacked file, of which a text only needs a small part.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any

from builtin_plugins.rag.answering.refusal_texts import SPOKEN
from builtin_plugins.rag.answering.words import is_function_word, words
from kernel.sdk.operations import mapped

_FORM = "1"
"""The format of what `_unpacked` makes: a new number invalidates stored files."""
_SURE = 0.45
_CERTAIN = 0.5
"""Above this, no other language can be as likely, so the slower ranking of all of them is not needed."""
_NO_LANGUAGE = "zxx"
"""The library's code for text without a language: random letters, codes."""
_NAMES = {"arz": "ar", "wuu": "zh", "yue": "zh", "nb": "no", "nn": "no"}
"""Written languages, by the names that stop words, stemmers and refusals use."""
_LATIN = "Latn"
_LETTERS = {"Hans": r"\p{Han}", "Jpan": r"[\p{Han}\p{Hiragana}\p{Katakana}]", "Kore": r"\p{Hangul}"}
"""Scripts of several alphabets."""

ALIKE = (
    frozenset({"be", "bg", "mk", "ru", "sr", "uk"}),
    frozenset({"bs", "hr", "sl", "sr"}),
    frozenset({"ca", "es", "gl", "pt"}),
    frozenset({"cs", "sk"}),
    frozenset({"da", "no", "sv"}),
    frozenset({"hi", "mr", "ne"}),
    frozenset({"id", "ms"}),
)
"""Languages that are confused in short texts, as they share many words."""

_ENOUGH_CHARS = 500  # all of 84 paragraphs in six languages were detected by 300 as well as by 2,000


class LanguageDetector:
    """Detects languages, as ISO 639 codes. May be called from any thread."""

    def __init__(self, home: Path | None = None) -> None:
        """The unpacked model is stored in `home`; without one, it is unpacked for this process only."""
        self._home = home
        self._loading = threading.Lock()
        self._identifier: Any = None

    def of(self, text: str) -> str | None:
        """The language of a text; None if it can't be detected, as of a single word, or if it has none,
        as random letters.

        A few words in a script of few languages, such as Thai or Cyrillic, are assigned to the most likely
        language with a refusal. So are a few words in Latin script if they include function words of that
        language.
        """
        identifier, beginning = self._loaded(), text[:_ENOUGH_CHARS]
        name, probability = identifier.classify(beginning)
        if probability > _CERTAIN:
            return _known_as(name)
        likely = Counter[str]()
        for name, probability in identifier.rank(beginning):
            likely[_NAMES.get(name, name)] += probability
        ranked = likely.most_common()
        likeliest, confidence = ranked[0]
        if confidence >= _SURE:
            return _known_as(likeliest)
        if likeliest in SPOKEN and _has_function_words(beginning, likeliest):
            return likeliest
        return next((name for name, _ in ranked if name in SPOKEN and _is_written(text, name)), None)

    @property
    def is_loaded(self) -> bool:
        """Whether the model is loaded: `of` then takes a tenth of a millisecond."""
        return self._identifier is not None

    def _loaded(self) -> Any:
        with self._loading:
            if self._identifier is None:
                self._identifier = load_identifier(self._home)
            return self._identifier


def are_alike(one: str, other: str) -> bool:
    """Whether two languages are confused in short texts."""
    return any({one, other} <= group for group in ALIKE)


def _known_as(name: str) -> str | None:
    return None if name == _NO_LANGUAGE else _NAMES.get(name, name)


def load_identifier(home: Path | None) -> Any:
    """py3langid's `LanguageIdentifier`, its unpacked model kept in `home`."""
    from py3langid.langid import MODEL_DIR, MODEL_FILE, LanguageIdentifier

    file = MODEL_DIR / MODEL_FILE
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()[:12]
    version = f"{digest}-{metadata.version('py3langid')}-{_FORM}"
    model = mapped.derived(home, "languages", version, partial(_unpacked, file))
    return LanguageIdentifier(
        model["probabilities"],
        model["priors"],
        bytes(model["names"]).decode().split(),
        model["moves"].data,
        model["features"].data,
        norm_probs=True,
        tk_row=model["rows"].data,
    )


def _unpacked(file: Path) -> dict[str, Any]:
    """What `LanguageIdentifier` is made from, as arrays."""
    import numpy as np
    from py3langid.modelio import load_model

    probabilities, priors, names, moves, rows, features = load_model(file)
    return {
        "probabilities": probabilities,
        "priors": priors,
        "names": np.frombuffer(" ".join(names).encode(), np.uint8),
        "moves": np.asarray(moves),
        "rows": np.asarray(rows),
        "features": np.asarray(features, np.int32),
    }


def _has_function_words(text: str, language: str) -> bool:
    """Whether at least two words, or half of them, are function words of the language."""
    text_words = words(text)
    functional = sum(is_function_word(word, language) for word in text_words)
    return functional >= 2 or 0 < len(text_words) <= 2 * functional


def _is_written(text: str, language: str) -> bool:
    """Whether a text is in the script of a language, except for Latin words such as names and codes."""
    letters = _letters_of(language)
    return letters is not None and len(letters.findall(text)) > len(_latin_words().findall(text))


@cache
def _letters_of(language: str) -> Any:
    """The letters of a language's script; None for Latin, which identifies no language."""
    import regex
    from babel.core import get_global

    script = get_global("likely_subtags")[language].split("_")[1]
    if script == _LATIN:
        return None
    return regex.compile(_LETTERS.get(script, rf"\p{{Script={script}}}"))


@cache
def _latin_words() -> Any:
    import regex

    return regex.compile(r"\p{Latin}+")
