"""The interface of engines. Another plugin's engine needs no import from here: all values are plain."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

SAMPLE_RATE = 16_000
TOO_LONG = "too_long"
"""A child's message about a recording that is longer than allowed."""


class Voice(NamedTuple):
    """A voice that a client may choose by its `id`."""

    id: str
    label: str


class Sound(NamedTuple):
    """One channel of signed 16-bit little-endian samples, `rate` of them per second."""

    samples: bytes
    rate: int

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return len(self.samples) / 2 / self.rate


class Transcript(NamedTuple):
    """What was understood, empty if nothing was, and the confidence in [0, 1]."""

    text: str
    confidence: float


@runtime_checkable
class Speaker(Protocol):
    """An engine that speaks."""

    name: str

    async def missing(self) -> str | None:
        """What it lacks, as a remedy ("install the program espeak-ng"); None if it can speak."""

    def voices(self) -> Mapping[str, Sequence[tuple[str, str]]]:
        """Its voices (id, label) by language code (``en``), the first of each the default; may be empty."""

    async def speak(self, text: str, language: str, voice: str | None, slow: bool) -> tuple[bytes, int]:
        """A sentence as sound: see `Sound`. Raises Unavailable with a remedy."""


@runtime_checkable
class Transcriber(Protocol):
    """An engine that transcribes."""

    name: str

    async def missing(self) -> str | None:
        """What it lacks, as a remedy; None if it can transcribe."""

    def languages(self) -> Collection[str]:
        """The language codes (``en``) that it understands."""

    async def transcribe(self, recording: Path, language: str) -> tuple[str, float]:
        """What is said in the file, as text and confidence in [0, 1].

        The file holds signed 16-bit little-endian samples, one channel, 16,000 per second, without a header.
        Raises Unavailable with a remedy.
        """
