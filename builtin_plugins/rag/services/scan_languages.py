"""Whether a scan was read in another language than its own: tesseract makes up words then, and is sure."""

from __future__ import annotations

from typing import Final

from builtin_plugins.documents.api import ParsedDocument
from builtin_plugins.rag.answering.languages import are_alike
from builtin_plugins.rag.answering.words import is_function_word, words

TESSERACT: Final = {
    "cs": "ces", "da": "dan", "de": "deu", "en": "eng", "es": "spa", "fi": "fin", "fr": "fra",
    "hu": "hun", "id": "ind", "it": "ita", "nl": "nld", "no": "nor", "pl": "pol", "pt": "por",
    "ro": "ron", "sv": "swe", "tr": "tur", "vi": "vie",
}  # fmt: skip
"""tesseract's names of languages in Latin letters. In other letters, it is unsure of what it makes up."""
_LEAST_WORDS: Final = 12
_COMMON_WORDS: Final = 3
_SHARE: Final = 0.06
_AHEAD: Final = 2.0


def unread_language(parsed: ParsedDocument, text: str, language: str | None, read: str) -> str | None:
    """What to tell users about a scan whose beginning is `text`, in `language`, if tesseract did not read it
    in that language; `read` are those in which it did, as it names them (`eng+deu`).

    None if not all pages were recognized, or it isn't certain: words that are common in the language must be
    frequent, and twice as frequent as those of each language that was read.
    """
    code, read_codes = TESSERACT.get(language or ""), read.split("+")
    names = [name for name, own_code in TESSERACT.items() if own_code in read_codes]
    if code is None or language is None or len(names) < len(read_codes):
        return None
    if language in names or any(are_alike(language, name) for name in names):
        return None
    if not parsed.recognized_pages or parsed.recognized_pages < (parsed.page_count or 1):
        return None
    text_words = words(text)
    common, others = _common(text_words, language), [_AHEAD * _common(text_words, name) for name in names]
    if len(text_words) < _LEAST_WORDS or common < max(_COMMON_WORDS, _SHARE * len(text_words), *others):
        return None
    return (
        f"It seems to be in {_english_name(language)}, which PLATFORM_RAG_OCR_LANGUAGES ({read}) does not "
        f"name, so that many of its words were recognized wrongly. Add '{code}' to it (Debian: apt install "
        f"tesseract-ocr-{code}), then delete the document and upload it again."
    )


def _common(text_words: list[str], language: str) -> int:
    """How many of the words are common in a language."""
    return sum(is_function_word(word, language) for word in text_words)


def _english_name(language: str) -> str:
    from babel import Locale

    return str(Locale("en").languages.get(language, language))
