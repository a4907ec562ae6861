"""Engines of other plugins: one that fails or hangs is named, and the others still work."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from builtin_plugins.speech.engines.protocol import Speaker, Transcriber
from kernel.sdk import ANY_ERROR, PlatformError, Unavailable

log = logging.getLogger("platform.speech")

_SECONDS = 3.0  # less than a health check may take
_RATES = range(1_000, 400_001)


class _Offered:
    """What both kinds have in common."""

    def __init__(self, plugin: str, engine: Speaker | Transcriber, seconds: float) -> None:
        self._plugin = plugin
        self._seconds = seconds
        self._failure_text = (
            f"the engine '{engine.name}' of the plugin '{plugin}' failed; the server's log says why"
        )
        self._missing = engine.missing
        self.name = engine.name

    async def missing(self) -> str | None:
        """What the engine lacks, or that it failed to say."""
        try:
            async with self._guarded(_SECONDS):
                return await self._missing()
        except Unavailable as error:
            return str(error.detail)

    def _report(self) -> None:
        log.exception("the speech engine '%s' of the plugin '%s' failed", self.name, self._plugin)

    @asynccontextmanager
    async def _guarded(self, seconds: float | None = None) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._seconds if seconds is None else seconds):
                yield
        except PlatformError:
            raise
        except ANY_ERROR:  # boundary: another author's engine
            self._report()
            raise Unavailable(self._failure_text) from None


class OfferedSpeaker(_Offered):
    """A plugin's `Speaker`."""

    def __init__(self, plugin: str, engine: Speaker, seconds: float) -> None:
        super().__init__(plugin, engine, seconds)
        self._engine = engine

    def voices(self) -> Mapping[str, Sequence[tuple[str, str]]]:
        """The engine's voices; none if it fails."""
        try:
            offered = self._engine.voices().items()
            return {language: [(id_, label) for id_, label in voices] for language, voices in offered}
        except ANY_ERROR:  # boundary: another author's engine
            self._report()
            return {}

    async def speak(self, text: str, language: str, voice: str | None, slow: bool) -> tuple[bytes, int]:
        """See `Speaker.speak`."""
        async with self._guarded():
            samples, rate = await self._engine.speak(text, language, voice, slow)
            if int(rate) not in _RATES:
                raise ValueError(f"speak() returned a rate of {rate} samples per second")
            return bytes(samples), int(rate)


class OfferedTranscriber(_Offered):
    """A plugin's `Transcriber`."""

    def __init__(self, plugin: str, engine: Transcriber, seconds: float) -> None:
        super().__init__(plugin, engine, seconds)
        self._engine = engine

    def languages(self) -> Collection[str]:
        """The engine's languages; none if it fails."""
        try:
            return frozenset(self._engine.languages())
        except ANY_ERROR:  # boundary: another author's engine
            self._report()
            return ()

    async def transcribe(self, recording: Path, language: str) -> tuple[str, float]:
        """See `Transcriber.transcribe`."""
        async with self._guarded():
            text, confidence = await self._engine.transcribe(recording, language)
            return str(text), max(0.0, min(float(confidence), 1.0))  # 0 for NaN, too
