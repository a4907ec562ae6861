"""The language detector shared by questions and documents."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from builtin_plugins.rag.answering.languages import LanguageDetector
from kernel.sdk import Platform, ResourceKey

LANGUAGES: ResourceKey[LanguageDetector] = ResourceKey("languages")


async def languages_of(platform: Platform, texts: Sequence[str]) -> list[str | None]:
    """The language of each text, detected from its beginning."""
    detector = platform.resource(LANGUAGES)
    return await asyncio.to_thread(lambda: [detector.of(text) if text.strip() else None for text in texts])
