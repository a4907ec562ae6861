"""The detector of languages that questions and documents share."""

from __future__ import annotations

from builtin_plugins.rag.answering.languages import LanguageDetector
from kernel.sdk import ResourceKey

LANGUAGES: ResourceKey[LanguageDetector] = ResourceKey("languages")
