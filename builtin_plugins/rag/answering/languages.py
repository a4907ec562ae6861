"""The language of a question or a document, by py3langid; loaded when first needed (half a second, 50 MB)."""

from __future__ import annotations

import threading
from typing import Any

_SURE = 0.45
_NO_LANGUAGE = "zxx"
"""What the library calls text without any: random letters, codes."""
_NAMES = {"wuu": "zh", "yue": "zh", "nb": "no", "nn": "no"}
"""Written languages by the names that stop words, stemmers and refusals know."""

ALIKE = (
    frozenset({"be", "bg", "mk", "ru", "sr", "uk"}),
    frozenset({"bs", "hr", "sl", "sr"}),
    frozenset({"ca", "es", "gl", "pt"}),
    frozenset({"cs", "sk"}),
    frozenset({"da", "no", "sv"}),
    frozenset({"hi", "mr", "ne"}),
    frozenset({"id", "ms"}),
)
"""Languages that are taken for each other in a short text, as they share so many words."""

_ENOUGH_CHARS = 2_000


class LanguageDetector:
    """Tells languages by their ISO 639 codes. May be called from any thread."""

    def __init__(self) -> None:
        self._loading = threading.Lock()
        self._identifier: Any = None

    def of(self, text: str) -> str | None:
        """The language of a text; None where it can't be told, as of a single word, or where it has none,
        as random letters.
        """
        found, confidence = self._loaded().classify(text[:_ENOUGH_CHARS])
        if confidence < _SURE or found == _NO_LANGUAGE:
            return None
        return _NAMES.get(found, str(found))

    def _loaded(self) -> Any:
        with self._loading:
            if self._identifier is None:
                from py3langid.langid import MODEL_FILE, LanguageIdentifier

                self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
            return self._identifier
