"""Engines that other plugins offer for speaking and transcribing."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.speech.engines.protocol import Speaker, Transcriber
from kernel.sdk import Platform, hookspec


@hookspec.declaration
def offer_speakers(platform: Platform) -> Sequence[Speaker]:
    """Engines that speak; they are preferred to the built-in ones.

    An engine has a `name`; ``async missing()`` returns what it lacks, as a remedy, or None; ``voices()``
    returns ``{language: [(id, label), …]}`` with the default first; ``async speak(text, language, voice,
    slow)`` returns ``(samples, rate)``: one channel of signed 16-bit little-endian samples. It raises
    `Unavailable` when it can't speak now.
    """


@hookspec.declaration
def offer_transcribers(platform: Platform) -> Sequence[Transcriber]:
    """Engines that transcribe; they are preferred to the built-in ones.

    An engine has a `name`; ``async missing()`` returns what it lacks, as a remedy, or None; ``languages()``
    returns codes such as ``en``; ``async transcribe(recording, language)`` reads a file of signed 16-bit
    samples (one channel, 16,000 per second, no header) and returns ``(text, confidence)``. It raises
    `Unavailable` when it can't transcribe now.
    """
