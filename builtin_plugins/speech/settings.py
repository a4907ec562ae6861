"""Settings of the speech plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, SecretStr, field_validator

from builtin_plugins.speech.languages import NAMES, REGIONS
from kernel.sdk import ExistingFolder, Settings, base_address, env


class SpeechSettings(Settings):
    """Engines for text to speech and speech to text. By default both work offline."""

    env_prefix: ClassVar[str] = "PLATFORM_SPEECH_"
    administered: ClassVar[frozenset[str]] = frozenset(
        {
            "default_tts_language",
            "default_stt_language",
            "max_text_length",
            "max_audio_size_mb",
        }
    )

    tts_engine: str = Field(
        "auto",
        validation_alias=env("TTS_ENGINE"),
        description="Engine that speaks: espeak-ng, piper, openai, the name of a plugin's engine, or auto "
        "for the first one that is available.",
    )
    stt_engine: str = Field(
        "auto",
        validation_alias=env("STT_ENGINE"),
        description="Engine that transcribes: pocketsphinx, whisper, openai, the name of a plugin's engine, "
        "or auto for the first one that is available.",
    )
    voices_dir: Annotated[Path | None, ExistingFolder()] = Field(
        None,
        validation_alias=env("TTS_VOICES_DIR"),
        description="Folder with further Piper voices (NAME.onnx next to NAME.onnx.json).",
    )
    default_tts_language: str = Field(
        "tr", validation_alias=env("DEFAULT_TTS_LANG"), description="Language to speak if none is given."
    )
    default_stt_language: str = Field(
        "tr-TR",
        validation_alias=env("DEFAULT_STT_LANG"),
        description="Language to transcribe if none is given.",
    )
    max_text_length: int = Field(
        5000,
        ge=1,
        le=100_000,
        validation_alias=env("TTS_MAX_TEXT_LENGTH"),
        description="Longest text to speak.",
    )
    max_audio_size_mb: int = Field(
        25,
        ge=1,
        le=500,
        validation_alias=env("STT_MAX_AUDIO_SIZE_MB"),
        description="Largest recording that can be sent, in MB.",
    )
    max_audio_seconds: int = Field(
        900, ge=1, le=14_400, description="Longest recording to transcribe, in seconds."
    )
    concurrency: int = Field(
        2, ge=1, le=64, description="Sentences and recordings that are processed at the same time."
    )
    waiting: int = Field(64, ge=0, description="Requests that may wait for an engine; further ones get 503.")
    tts_url: Annotated[str, AfterValidator(base_address)] | None = Field(
        None,
        description="Address of a server with OpenAI's /v1/audio/speech, such as http://127.0.0.1:8880.",
    )
    tts_model: str = Field("tts-1", description="Model to request from that server.")
    tts_key: SecretStr | None = Field(None, description="API key for that server.")
    stt_url: Annotated[str, AfterValidator(base_address)] | None = Field(
        None,
        description="Address of a server with OpenAI's /v1/audio/transcriptions, such as "
        "http://127.0.0.1:8000.",
    )
    stt_model: str = Field("whisper-1", description="Model to request from that server.")
    stt_key: SecretStr | None = Field(None, description="API key for that server.")
    whisper_model: Annotated[Path | None, ExistingFolder()] = Field(
        None, description="Folder with a model for faster-whisper, which is an extra package."
    )
    remote_seconds: float = Field(
        120, gt=0, description="Time limit in seconds for one call to such a server or to a plugin's engine."
    )

    @field_validator("default_tts_language")
    @classmethod
    def _spoken(cls, value: str) -> str:
        return _one_of(value, NAMES)

    @field_validator("default_stt_language")
    @classmethod
    def _heard(cls, value: str) -> str:
        return _one_of(value, REGIONS)


def _one_of(value: str, known: dict[str, str]) -> str:
    if value not in known:
        raise ValueError(f"must be one of: {', '.join(known)}")
    return value


AudioFormat = Literal["wav", "mp3"]
