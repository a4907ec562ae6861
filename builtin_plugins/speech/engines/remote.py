"""A server with OpenAI's audio routes, for speaking and for transcribing."""

from __future__ import annotations

import asyncio
import io
import json
import wave
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import aiohttp
from pydantic import SecretStr

from builtin_plugins.speech.audio.writing import wav
from builtin_plugins.speech.engines.protocol import SAMPLE_RATE, Sound, Transcript, Voice
from builtin_plugins.speech.errors import CannotSpeak, CannotTranscribe
from builtin_plugins.speech.languages import NAMES
from kernel.sdk import OutgoingClient, OutgoingError

_VOICES = ("alloy", "echo", "fable", "onyx", "nova", "shimmer")


class RemoteServer:
    """One server: where it is, what model to ask it for, and its key."""

    def __init__(self, client: OutgoingClient, url: str, model: str, key: SecretStr | None) -> None:
        self._client = client
        self._base = url.rstrip("/").removesuffix("/v1")
        self._headers = {} if key is None else {"Authorization": f"Bearer {key.get_secret_value()}"}
        self.model = model

    async def post(self, path: str, body: bytes, content_type: str) -> tuple[int, bytes]:
        """Send a request to a route below ``/v1``; returns status and body. Raises OutgoingError."""
        headers = {**self._headers, "Content-Type": content_type}
        url = f"{self._base}/v1{path}"
        async with await self._client.call("POST", url, headers=headers, body=body) as reply:
            return reply.status, await reply.read()


class RemoteSpeaker:
    """Speaks through ``POST /v1/audio/speech``."""

    name = "openai"

    def __init__(self, server: RemoteServer | None) -> None:
        self._server = server

    async def missing(self) -> str | None:
        """Whether a server is named."""
        return None if self._server else "set PLATFORM_SPEECH_TTS_URL to the address of a server"

    def voices(self) -> Mapping[str, Sequence[tuple[str, str]]]:
        """The voices that OpenAI's models have; they speak every language."""
        return {code: [Voice(name, name.title()) for name in _VOICES] for code in NAMES}

    async def speak(self, text: str, language: str, voice: str | None, slow: bool) -> tuple[bytes, int]:
        """A sentence as sound."""
        assert self._server is not None
        body = {
            "model": self._server.model,
            "input": text,
            "voice": voice or _VOICES[0],
            "response_format": "wav",
            "speed": 0.7 if slow else 1.0,
        }
        try:
            sent = json.dumps(body).encode()
            status, answer = await self._server.post("/audio/speech", sent, "application/json")
        except OutgoingError as error:
            raise CannotSpeak("The speech server does not answer; check its address") from error
        if status != 200:
            raise CannotSpeak(f"The speech server answered {status}; check its model and key")
        return await asyncio.to_thread(_read_wav, answer)


class RemoteTranscriber:
    """Transcribes through ``POST /v1/audio/transcriptions``."""

    name = "openai"

    def __init__(self, server: RemoteServer | None) -> None:
        self._server = server

    async def missing(self) -> str | None:
        """Whether a server is named."""
        return None if self._server else "set PLATFORM_SPEECH_STT_URL to the address of a server"

    def languages(self) -> Collection[str]:
        """Every language of the service."""
        return tuple(NAMES)

    async def transcribe(self, recording: Path, language: str) -> tuple[str, float]:
        """What the server understood; it gives no confidence."""
        assert self._server is not None
        samples = await asyncio.to_thread(recording.read_bytes)
        form = aiohttp.FormData({"model": self._server.model, "language": language})
        form.add_field(
            "file", wav(Sound(samples, SAMPLE_RATE)), filename="recording.wav", content_type="audio/wav"
        )
        try:
            payload = form()
            status, answer = await self._server.post(
                "/audio/transcriptions", await payload.as_bytes(), payload.headers["Content-Type"]
            )
        except OutgoingError as error:
            raise CannotTranscribe("The transcription server does not answer; check its address") from error
        if status != 200:
            raise CannotTranscribe(f"The transcription server answered {status}; check its model and key")
        text = _text_of(answer)
        return Transcript(text, 0.9 if text else 0.0)


def _text_of(answer: bytes) -> str:
    try:
        text = json.loads(answer)["text"]
    except (ValueError, KeyError, TypeError) as error:
        raise CannotTranscribe("The transcription server returned no text; check its address") from error
    return str(text).strip()


def _read_wav(audio: bytes) -> Sound:
    """The samples of a 16-bit WAV file; only the first of several channels."""
    try:
        with wave.open(io.BytesIO(audio)) as file:
            if file.getsampwidth() != 2:
                raise CannotSpeak("The speech server sent sound that is not 16-bit; change its settings")
            samples = file.readframes(len(audio))
            step = 2 * file.getnchannels()
            if step > 2:
                samples = b"".join(samples[at : at + 2] for at in range(0, len(samples), step))
            return Sound(samples, file.getframerate())
    except (wave.Error, EOFError) as error:
        raise CannotSpeak("The speech server did not return WAV audio; check its address") from error
