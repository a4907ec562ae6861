"""Speech to text: what is spoken by a real voice, recorded in every format, and sent by hostile clients."""

from __future__ import annotations

import asyncio
import io
import re
import struct
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
import soundfile
from aiohttp import web
from aiohttp.test_utils import TestServer

from builtin_plugins.speech.settings import SpeechSettings
from kernel.sdk import Platform, Plugin, hookimpl
from kernel.testing import Actor, Reply, Running, Start

SENTENCE = "One two three four five six seven."


@pytest.fixture
async def running(start_platform: Start) -> Running:
    """A platform with the offline engines."""
    return await start_platform("speech")


@pytest.fixture
async def actor(running: Running) -> Actor:
    """Somebody who sends recordings."""
    return await running.user()


@pytest.fixture
async def recording(espeak: None, actor: Actor) -> tuple[np.ndarray, int]:
    """The sentence, spoken."""
    answer = await actor.post("/v1/tts", json={"text": SENTENCE, "language": "en", "voice": "male"})
    return soundfile.read(io.BytesIO(answer.body), dtype="int16")


def packed(samples: np.ndarray, rate: int, kind: str, subtype: str | None = None) -> bytes:
    """A recording as a file."""
    out = io.BytesIO()
    if kind == "MP3":  # libsndfile 1.2 writes noise for integers in stereo
        samples = (samples / 32_768).astype(np.float32)
    soundfile.write(out, samples, rate, format=kind, subtype=subtype)
    return out.getvalue()


async def send(
    actor: Actor, content: bytes | io.BytesIO, name: str = "a.wav", language: str | None = "en-US"
) -> Reply:
    """Send a recording as browsers do."""
    form = aiohttp.FormData()
    form.add_field("file", content, filename=name, content_type="application/octet-stream")
    if language is not None:
        form.add_field("language", language)
    return await actor.post("/v1/stt", data=form)


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


async def test_understands_english(actor: Actor, recording: tuple[np.ndarray, int]) -> None:
    """Most words of a spoken sentence come back."""
    answer = await send(actor, packed(*recording, "WAV"))
    assert answer.status == 200, answer.body
    body = answer.json()
    assert (body["language"], body["confidence"], body["engine"]) == ("en-US", 0.9, "pocketsphinx")
    assert len(words(body["text"]) & words(SENTENCE)) >= 4, body["text"]


async def test_decodes_every_format(
    ffmpeg: None, start_platform: Start, recording: tuple[np.ndarray, int]
) -> None:
    """An engine hears the same sound whatever it was packed in: stereo, other rates, what browsers record."""
    from scipy.signal import resample_poly  # two seconds in each process of a run

    samples, rate = recording
    stereo = np.stack([samples, samples], axis=1)
    wav = packed(stereo, rate, "WAV")
    high = resample_poly(samples.astype(np.float32), 160, 147).astype(np.int16)
    files = {
        "a.wav": wav,
        "b.wav": packed(stereo, rate, "WAV", "FLOAT"),
        "a.flac": packed(stereo, rate, "FLAC"),
        "a.mp3": packed(stereo, rate, "MP3"),
        "a.ogg": packed(stereo, rate, "OGG", "VORBIS"),
        "opus.ogg": packed(high, 24_000, "OGG", "OPUS"),
        "a.webm": await _converted(wav, "a.webm", "libopus"),
        "a.m4a": await _converted(wav, "a.m4a", "aac"),
    }
    audio = AudioServer()
    async with audio.serve() as url:
        actor = await (await start_platform("speech", env={"PLATFORM_SPEECH_STT_URL": url})).user()
        for name, content in files.items():
            answer = await send(actor, content, name)
            assert answer.status == 200, (name, answer.body)
    heard = [request["samples"] for request in audio.requests]
    for name, sound in zip(files, heard, strict=True):
        assert likeness(heard[0], sound) > 0.9, name


def likeness(one: np.ndarray, other: np.ndarray) -> float:
    """The highest correlation of two sounds over all shifts, in [0, 1]."""
    size = 2 ** int(np.ceil(np.log2(len(one) + len(other))))
    product = np.fft.irfft(np.fft.rfft(one, size) * np.conj(np.fft.rfft(other, size)), size)
    return float(np.abs(product).max() / np.sqrt((one**2).sum() * (other**2).sum()))


async def _converted(content: bytes | io.BytesIO, name: str, codec: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / name
        process = await asyncio.create_subprocess_exec(
            *("ffmpeg", "-v", "error", "-i", "pipe:0", "-c:a", codec, str(target)),
            stdin=asyncio.subprocess.PIPE,
        )
        await process.communicate(content)
        return target.read_bytes()


async def test_silence_is_nothing(actor: Actor) -> None:
    """Twelve minutes of silence, 23 MB of it, are no text."""
    silent = io.BytesIO(packed(np.zeros(16_000 * 720, dtype=np.int16), 16_000, "WAV"))
    answer = await send(actor, silent)
    assert (answer.status, answer.json()["text"], answer.json()["confidence"]) == (200, "", 0.0)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("program.wav", b"\x7fELF\x02\x01\x01" + bytes(4096)),
        ("text.wav", b"This is not a recording at all. " * 50),
        ("lies.wav", b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0" + bytes(14) + b"data\xff\xff\xff\xff"),
        ("cut.mp3", b"ID3\x04\0\0\0\0\x0f\x7f" + bytes(100)),
        ("broken.webm", b"\x1a\x45\xdf\xa3" + bytes(1000)),
    ],
)
async def test_what_is_no_recording_is_refused(actor: Actor, name: str, content: bytes) -> None:
    answer = await send(actor, content, name)
    assert answer.status == 400, answer.body
    assert answer.json()["code"] == "audio_unreadable"
    assert "Traceback" not in answer.body.decode()


async def test_a_header_that_promises_more(actor: Actor) -> None:
    samples = np.zeros(1600, dtype=np.int16)
    content = bytearray(packed(samples, 16_000, "WAV"))
    content[40:44] = struct.pack("<I", 0xFFFFFF00)
    assert (await send(actor, bytes(content))).json()["text"] == ""


async def test_limits(start_platform: Start) -> None:
    env = {"STT_MAX_AUDIO_SIZE_MB": "1", "PLATFORM_SPEECH_MAX_AUDIO_SECONDS": "60"}
    actor = await (await start_platform("speech", env=env)).user()
    large = await send(actor, io.BytesIO(b"RIFF" + bytes(2_200_000)))
    assert (large.status, "1 MB" in large.detail) == (413, True)
    bomb = packed(np.zeros(16_000 * 1200, dtype=np.int16), 16_000, "FLAC")
    assert len(bomb) < 200_000
    long = await send(actor, bomb, "bomb.flac")
    assert (long.status, long.json()["code"]) == (413, "recording_too_long")
    empty = await send(actor, b"")
    assert (empty.status, empty.detail[0]["loc"]) == (422, ["body", "file"])
    unknown = await send(actor, b"RIFF", language="xx-XX")
    assert (unknown.status, unknown.detail[0]["loc"]) == (422, ["body", "language"])
    assert "tr-TR" in unknown.detail[0]["msg"]


async def test_languages_without_an_engine(running: Running, actor: Actor) -> None:
    """The default language has no engine here: 503 names it and the remedy; the list says which have one."""
    listed = (await running.anonymous.get("/v1/stt/languages")).json()
    assert (listed["default"], listed["auto_detect"], listed["available"]) == ("tr-TR", True, True)
    assert listed["engines"] == {"en-US": "pocketsphinx"}
    answer = await send(actor, packed(np.zeros(160, dtype=np.int16), 16_000, "WAV"), language=None)
    assert answer.status == 503
    assert "Turkish" in answer.detail
    assert "PLATFORM_SPEECH_STT_URL" in answer.detail
    refused = await send(running.anonymous, b"RIFF")
    assert refused.status == 401


class AudioServer:
    """A server with OpenAI's audio routes."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.status = 200

    async def transcriptions(self, request: web.Request) -> web.Response:
        form = await request.post()
        file: Any = form["file"]
        samples, rate = soundfile.read(file.file)
        self.requests.append(
            {
                "model": form["model"],
                "language": form["language"],
                "samples": samples,
                "rate": rate,
                "seconds": len(samples) / rate,
                "key": request.headers.get("Authorization"),
            }
        )
        return web.json_response({"text": " Merhaba dünya "}, status=self.status)

    async def speech(self, request: web.Request) -> web.Response:
        self.requests.append(await request.json())
        tone = (np.sin(np.arange(24_000) / 10) * 8000).astype(np.int16)
        return web.Response(body=packed(tone, 24_000, "WAV"), content_type="audio/wav", status=self.status)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_post("/v1/audio/transcriptions", self.transcriptions)
        app.router.add_post("/v1/audio/speech", self.speech)
        async with TestServer(app) as server:
            yield str(server.make_url("")).rstrip("/")


async def test_servers_in_the_shape_of_openai(start_platform: Start) -> None:
    audio = AudioServer()
    async with audio.serve() as url:
        env = {
            "PLATFORM_SPEECH_STT_URL": url,
            "PLATFORM_SPEECH_STT_KEY": "very-secret",
            "PLATFORM_SPEECH_TTS_URL": url + "/v1",
        }
        actor = await (await start_platform("speech", env=env)).user()
        noise = np.random.default_rng(1).integers(-9000, 9000, 44_100).astype(np.int16)
        heard = await send(actor, packed(noise, 44_100, "WAV"), language=None)
        assert heard.json() == {
            "text": "Merhaba dünya",
            "language": "tr-TR",
            "confidence": 0.9,
            "engine": "openai",
        }
        assert audio.requests[0]["language"] == "tr"
        assert (audio.requests[0]["rate"], audio.requests[0]["key"]) == (16_000, "Bearer very-secret")
        assert audio.requests[0]["seconds"] == pytest.approx(1, abs=0.05)
        spoken = await actor.post("/v1/tts", json={"text": "Merhaba.", "voice": "nova"})
        assert (spoken.headers["X-Engine"], spoken.headers["X-Audio-Seconds"]) == ("openai", "1.000")
        assert (audio.requests[1]["input"], audio.requests[1]["voice"]) == ("Merhaba.", "nova")
        audio.status = 500
        broken = await send(actor, packed(noise, 44_100, "WAV"))
        assert (broken.status, "500" in broken.detail, "secret" in broken.detail) == (503, True, False)


class OwnEngine:
    """An engine of another plugin: plain values, nothing imported."""

    name = "own"

    async def missing(self) -> str | None:
        return None

    def voices(self) -> dict[str, list[tuple[str, str]]]:
        return {"tr": [("ayla", "Ayla")]}

    def languages(self) -> list[str]:
        return ["tr"]

    async def speak(self, text: str, language: str, voice: str | None, slow: bool) -> tuple[bytes, int]:
        return bytes(8000 * 2), 8000

    async def transcribe(self, recording: Path, language: str) -> tuple[str, float]:
        size = await asyncio.to_thread(lambda: recording.stat().st_size)
        return f"{size} bytes", 0.5


class EnginePlugin(Plugin):
    """Brings it."""

    name = "engine"
    version = "1"

    @hookimpl(optionalhook=True)
    def offer_speakers(self, platform: Platform) -> list[OwnEngine]:
        return [OwnEngine()]

    @hookimpl(optionalhook=True)
    def offer_transcribers(self, platform: Platform) -> list[OwnEngine]:
        return [OwnEngine()]


async def test_engines_of_plugins(espeak: None, start_platform: Start) -> None:
    """They are preferred for the languages that they know; the others go on as before."""
    actor = await (await start_platform("speech", EnginePlugin)).user()
    turkish = await actor.post("/v1/tts", json={"text": "Merhaba."})
    assert (turkish.headers["X-Engine"], turkish.headers["X-Audio-Seconds"]) == ("own", "1.000")
    german = await actor.post("/v1/tts", json={"text": "Hallo.", "language": "de"})
    assert german.headers["X-Engine"] == "espeak-ng"
    loud = np.random.default_rng(1).integers(-9000, 9000, 16_000).astype(np.int16)
    heard = (await send(actor, packed(loud, 16_000, "WAV"), language="tr-TR")).json()
    assert (heard["text"], heard["confidence"], heard["engine"]) == ("32000 bytes", 0.5, "own")


async def test_openai_shape(actor: Actor, recording: tuple[np.ndarray, int]) -> None:
    """OpenAI's clients send a language's code, and read the text as JSON or plain, as they ask for it."""

    async def send_form(**fields: str) -> Reply:
        form = aiohttp.FormData()
        form.add_field("file", packed(*recording, "WAV"), filename="a.wav")
        for name, value in {"model": "whisper-1", "language": "en", **fields}.items():
            form.add_field(name, value)
        return await actor.post("/v1/ai/audio/transcriptions", data=form)

    answer = await send_form()
    assert answer.status == 200, answer.body
    assert len(words(answer.json()["text"]) & words(SENTENCE)) >= 4
    plain = await send_form(response_format="text")
    assert plain.headers["Content-Type"].startswith("text/plain")
    assert plain.body.decode() == f"{answer.json()['text']}\n"
    assert (await send_form(response_format="verbose_json")).json()["text"] == answer.json()["text"]
    refused = await send_form(response_format="srt")
    assert refused.status == 422 and "verbose_json" in refused.json()["error"]["message"]


def test_settings_are_checked() -> None:
    """A default language that doesn't exist is refused with the list."""
    with pytest.raises(ValueError, match="tr-TR"):
        SpeechSettings(DEFAULT_STT_LANG="en")
