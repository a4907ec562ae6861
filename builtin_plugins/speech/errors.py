"""Errors of the speech service."""

from __future__ import annotations

from kernel.sdk import BadRequest, PayloadTooLarge, Unavailable


class CannotSpeak(Unavailable):
    code = "speech_engine_unavailable"
    default_detail = "No engine on this server can speak; install the program espeak-ng"


class CannotTranscribe(Unavailable):
    code = "transcription_engine_unavailable"
    default_detail = "No engine on this server can transcribe this language"


class TooBusy(Unavailable):
    code = "speech_busy"
    default_detail = "Too many requests are waiting for the speech engine; try again in a moment"

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "5"})


class AudioUnreadable(BadRequest):
    code = "audio_unreadable"
    default_detail = "The file could not be decoded as audio; send WAV, FLAC, OGG, MP3, WebM or M4A"


class RecordingTooLong(PayloadTooLarge):
    code = "recording_too_long"
