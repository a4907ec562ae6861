"""Bodies and answers of the service (wire-facts 13)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from builtin_plugins.speech.settings import AudioFormat
from kernel.sdk import Body, example


class SpeakRequest(Body):
    """What to say."""

    model_config = example(text="Good morning. It is nine o'clock.", language="en")

    text: str = Field(min_length=1, description="Text to speak, at most TTS_MAX_TEXT_LENGTH characters.")
    language: str | None = Field(
        None, description="Language code, such as en; DEFAULT_TTS_LANG if not given."
    )
    slow: bool = Field(False, description="Speak slowly.")
    voice: str | None = Field(
        None, max_length=200, description="Id of a voice; an unknown one means the language's default."
    )
    format: AudioFormat | None = Field(
        None, description="wav or mp3; if not given, the Accept header decides, and WAV is the default."
    )


class SpeechRequest(BaseModel):
    """OpenAI's body of `POST /v1/audio/speech`; fields that this platform has no use for are ignored."""

    model_config = ConfigDict(
        extra="ignore", **example(model="tts-1", input="Good morning.", voice="default")
    )

    model: str = Field("tts-1", max_length=200, description="Accepted and ignored: TTS_ENGINE decides.")
    input: str = Field(min_length=1, description="Text to speak, at most TTS_MAX_TEXT_LENGTH characters.")
    voice: str | None = Field(None, max_length=200, description="Id of a voice.")
    response_format: Literal["mp3", "wav"] = Field("mp3", description="Format of the answer.")
    speed: float = Field(1.0, ge=0.25, le=4.0, description="Below 0.9: slowly.")
    language: str = Field("en", description="Language code; not in OpenAI's body.")


class LanguagesOut(BaseModel):
    """The languages that can be spoken."""

    languages: dict[str, str] = Field(description="Names by language code.")
    default: str
    available: bool = Field(description="Whether an engine can speak now.")
    engines: list[str] = Field(description="The engines that can speak now, the preferred one first.")


class VoiceOut(BaseModel):
    """A voice."""

    id: str
    label: str


class VoicesOut(BaseModel):
    """The voices of a language."""

    language: str
    voices: list[VoiceOut]


class TranscriptOut(BaseModel):
    """What was understood."""

    text: str
    language: str
    confidence: float = Field(ge=0, le=1)
    engine: str


class OpenAiTranscript(BaseModel):
    """OpenAI's answer of `POST /v1/audio/transcriptions`."""

    text: str


class TranscriptionLanguagesOut(BaseModel):
    """The languages of recordings."""

    languages: dict[str, str] = Field(description="Names by regional code.")
    auto_detect: bool
    default: str
    available: bool = Field(description="Whether an engine can transcribe now.")
    engines: dict[str, str] = Field(
        description="The engine of each language that can be transcribed now; other languages get 503."
    )


class RootOut(BaseModel):
    """Name and state of the service."""

    name: str
    version: str
    status: str
    tts_available: bool
    stt_available: bool
