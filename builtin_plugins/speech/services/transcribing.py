"""Transcribing: a recording decoded, and handed to the engine of its language."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from builtin_plugins.speech.audio.decoding import decode_recording
from builtin_plugins.speech.engines.protocol import Transcriber, Transcript
from builtin_plugins.speech.errors import CannotTranscribe
from builtin_plugins.speech.languages import REGIONS, base_of
from builtin_plugins.speech.services.turns import SpeechTurns
from kernel.sdk import Children, Platform, ResourceKey

TRANSCRIBING: ResourceKey[Transcribing] = ResourceKey("speech: transcribing")
_REMEDY = (
    "set PLATFORM_SPEECH_STT_URL to a transcription server, or PLATFORM_SPEECH_WHISPER_MODEL to the folder "
    "of a model"
)


class Transcribing:
    """The engines that transcribe, the preferred one first."""

    def __init__(
        self,
        platform: Platform,
        transcribers: Sequence[Transcriber],
        turns: SpeechTurns,
        children: Children,
        most_seconds: int,
    ) -> None:
        self._transcribers = transcribers
        self._turns = turns
        self._children = children
        self._most_seconds = most_seconds
        self._requests = platform.metrics.counter(
            "stt_requests_total", "Recordings transcribed.", ("language", "status")
        )

    async def available(self) -> list[Transcriber]:
        """The engines that can transcribe now."""
        return [engine for engine in self._transcribers if await engine.missing() is None]

    async def remedy(self) -> str:
        """What the preferred engine lacks."""
        return next(
            iter([lack for engine in self._transcribers if (lack := await engine.missing())]), _REMEDY
        )

    async def engines(self) -> dict[str, str]:
        """Which engine transcribes which region's language; those without one are left out."""
        available = await self.available()
        engines = {
            region: next((engine.name for engine in available if base_of(region) in engine.languages()), None)
            for region in REGIONS
        }
        return {region: name for region, name in engines.items() if name is not None}

    async def transcribe(self, recording: Path, region: str) -> tuple[Transcript, str]:
        """What is said in an audio file, and the engine's name.

        Raises CannotTranscribe, AudioUnreadable, RecordingTooLong, TooBusy.
        """
        try:
            engine = await self._choose(region)
            async with self._turns.turn():
                heard = await self._decoded(engine, recording, base_of(region))
        except BaseException:  # a caller that leaves before the end counts, too
            self._requests.labels(region, "error").inc()
            raise
        self._requests.labels(region, "success").inc()
        return heard, engine.name

    async def _choose(self, region: str) -> Transcriber:
        for engine in await self.available():
            if base_of(region) in engine.languages():
                return engine
        raise CannotTranscribe(f"No engine on this server transcribes {REGIONS[region]}: {_REMEDY}")

    async def _decoded(self, engine: Transcriber, recording: Path, language: str) -> Transcript:
        samples = recording.with_suffix(".samples")
        try:
            seconds = await decode_recording(self._children, recording, samples, self._most_seconds)
            if not seconds:
                return Transcript("", 0.0)
            return Transcript(*await engine.transcribe(samples, language))
        finally:
            for left in (samples, samples.with_suffix(".unpacked")):
                await asyncio.to_thread(left.unlink, missing_ok=True)
