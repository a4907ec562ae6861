"""Speaking: chooses engine and voice, and speaks sentence by sentence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import NamedTuple

from builtin_plugins.speech.engines.protocol import Sound, Speaker, Voice
from builtin_plugins.speech.errors import CannotSpeak
from builtin_plugins.speech.languages import NAMES
from builtin_plugins.speech.services.turns import SpeechTurns
from builtin_plugins.speech.text.sentences import sentences
from kernel.sdk import Platform, ResourceKey

SPEAKING: ResourceKey[Speaking] = ResourceKey("speech: speaking")


class Utterance(NamedTuple):
    """What to say, in which language, by which voice (None: the language's default), and whether slowly."""

    text: str
    language: str
    voice: str | None
    slow: bool


class Spoken(NamedTuple):
    """Who speaks, and the sounds of the sentences in order."""

    engine: str
    sentence_count: int
    sounds: AsyncGenerator[Sound, None]


class Speaking:
    """The engines that speak, the preferred one first."""

    def __init__(self, platform: Platform, speakers: Sequence[Speaker], turns: SpeechTurns) -> None:
        self._speakers = speakers
        self._turns = turns
        self._requests = platform.metrics.counter(
            "tts_requests_total", "Texts spoken.", ("language", "status")
        )
        self._normalizers: dict[str, Callable[[str], str]] = {}

    async def available(self) -> list[Speaker]:
        """The engines that can speak now."""
        return [speaker for speaker in self._speakers if await speaker.missing() is None]

    async def voices(self, language: str) -> list[Voice]:
        """The voices of a language, the default first; those of all engines."""
        voices = (voice for speaker in await self.available() for voice in speaker.voices().get(language, ()))
        by_id = {voice[0]: Voice(*voice) for voice in reversed(list(voices))}
        return list(reversed(by_id.values()))

    async def speak(self, utterance: Utterance) -> Spoken:
        """Speak a text that is not blank. Raises CannotSpeak when no engine can, TooBusy while spoken."""
        speaker, voice = await self._choose(utterance)
        text = await asyncio.to_thread(self._normalize, utterance.text, utterance.language)
        parts = sentences(text) or [utterance.text]
        return Spoken(speaker.name, len(parts), self._sounds(speaker, voice, utterance, parts))

    def count(self, language: str, *, good: bool) -> None:
        """Note the outcome of one request."""
        self._requests.labels(language, "success" if good else "error").inc()

    async def _choose(self, utterance: Utterance) -> tuple[Speaker, str | None]:
        """The engine that has the voice, else the first that speaks the language with its default voice."""
        speaking = [engine for engine in await self.available() if utterance.language in engine.voices()]
        for engine in speaking:
            if any(utterance.voice == voice[0] for voice in engine.voices()[utterance.language]):
                return engine, utterance.voice
        if speaking:
            return speaking[0], None
        raise CannotSpeak(
            f"No engine on this server speaks {NAMES[utterance.language]}: {await self.remedy()}"
        )

    async def remedy(self) -> str:
        """What the engines lack, any of which would do."""
        lacks = [lack for speaker in self._speakers if (lack := await speaker.missing())]
        return "; or ".join(dict.fromkeys(lacks)) or "change TTS_ENGINE"

    def _normalize(self, text: str, language: str) -> str:
        # Imported on first use: loading the languages' data takes a second.
        from builtin_plugins.speech.text.normalizing import Normalizer

        if language not in self._normalizers:
            self._normalizers[language] = Normalizer(language)
        return self._normalizers[language](text)

    async def _sounds(
        self, speaker: Speaker, voice: str | None, utterance: Utterance, parts: Sequence[str]
    ) -> AsyncGenerator[Sound, None]:
        for part in parts:
            async with self._turns.turn():
                sound = Sound(*await speaker.speak(part, utterance.language, voice, utterance.slow))
            yield sound
