"""Text to speech, with the real program and a real neural voice."""

from __future__ import annotations

import io

import numpy as np
import pytest
import soundfile

from kernel.testing import Actor, Running, Start

pytestmark = pytest.mark.usefixtures("espeak")


@pytest.fixture
async def running(start_platform: Start) -> Running:
    """A platform that speaks."""
    return await start_platform("speech")


@pytest.fixture
async def actor(running: Running) -> Actor:
    """Somebody who may have texts spoken."""
    return await running.user()


def read(body: bytes) -> tuple[np.ndarray, int]:
    """The samples of a file, in [-1, 1], and their rate."""
    return soundfile.read(io.BytesIO(body))


async def test_speaks_wav(actor: Actor) -> None:
    """A short text is a whole WAV file, with the headers that clients read."""
    answer = await actor.post("/v1/tts", json={"text": "Good morning, everybody.", "language": "en"})
    assert answer.status == 200, answer.body
    assert answer.headers["Content-Type"] == "audio/wav"
    assert answer.headers["Content-Disposition"] == "attachment; filename=speech.wav"
    assert answer.headers["X-Language"] == "en"
    assert answer.headers["X-Duration"] == "1.6"
    samples, rate = read(answer.body)
    assert 0.8 < len(samples) / rate < 4
    assert float(answer.headers["X-Audio-Seconds"]) == pytest.approx(len(samples) / rate, abs=0.001)
    assert 0.05 < np.abs(samples).max() <= 1.0


async def test_speaks_every_language(actor: Actor) -> None:
    known = (await actor.get("/v1/tts/languages")).json()
    assert list(known["languages"]) == ["tr", "en", "de", "fr", "es", "it", "pt", "nl", "ru", "ja", "ko"]
    assert (known["default"], known["available"]) == ("tr", True)
    texts = {"ja": "こんにちは。", "ko": "안녕하세요.", "ru": "Доброе утро.", "tr": "Günaydın."}
    for language in known["languages"]:
        answer = await actor.post(
            "/v1/tts", json={"text": texts.get(language, "Hallo, radio."), "language": language}
        )
        assert (answer.status, answer.headers["X-Language"]) == (200, language)
        samples, rate = read(answer.body)
        assert len(samples) / rate > 0.3
        assert np.abs(samples).max() > 0.05


async def test_default_language_and_slow(actor: Actor) -> None:
    usual = await actor.post("/v1/tts", json={"text": "Bugün hava çok güzel."})
    slow = await actor.post("/v1/tts", json={"text": "Bugün hava çok güzel.", "slow": True})
    assert usual.headers["X-Language"] == "tr"
    assert float(slow.headers["X-Audio-Seconds"]) > 1.2 * float(usual.headers["X-Audio-Seconds"])


@pytest.mark.parametrize("ask", [{"json": {"format": "mp3"}}, {"headers": {"Accept": "audio/mpeg"}}])
async def test_speaks_mp3(actor: Actor, ask: dict[str, dict[str, str]]) -> None:
    """MP3 by the field or by the header, with the same sound in it."""
    body = {"text": "Good morning, everybody.", "language": "en"}
    answer = await actor.post("/v1/tts", json={**body, **ask.get("json", {})}, headers=ask.get("headers", {}))
    assert answer.headers["Content-Type"] == "audio/mpeg"
    assert answer.headers["Content-Disposition"] == "attachment; filename=speech.mp3"
    samples, rate = read(answer.body)
    assert len(samples) / rate == pytest.approx(float(answer.headers["X-Audio-Seconds"]), abs=0.15)
    assert np.abs(samples).max() > 0.05


@pytest.mark.parametrize("kind", ["wav", "mp3"])
async def test_long_texts_are_streamed(running: Running, actor: Actor, kind: str) -> None:
    """The first sentence arrives as sound before the last is spoken; the whole is as long as its parts."""
    sentence = "The lighthouse keeper counts the ships that pass in the night."
    text = " ".join([sentence] * 10)
    one = await actor.post("/v1/tts", json={"text": sentence, "language": "en"})
    headers = {"Authorization": f"Bearer {actor.token}"}
    body = {"text": text, "language": "en", "format": kind}
    async with running.session.post(running.url + "/v1/tts", json=body, headers=headers) as answer:
        assert answer.headers["Transfer-Encoding"] == "chunked"
        assert "X-Audio-Seconds" not in answer.headers
        pieces = [piece async for piece in answer.content.iter_any()]
    assert len(pieces) > 3
    samples, rate = read(b"".join(pieces))
    expected = 10 * float(one.headers["X-Audio-Seconds"])
    assert len(samples) / rate == pytest.approx(expected, rel=0.02)


async def test_voices(actor: Actor) -> None:
    """English has three voices that sound different; an unknown one is the default."""
    listed = (await actor.get("/v1/tts/voices?language=en")).json()
    assert listed["language"] == "en"
    assert [voice["id"] for voice in listed["voices"]][:3] == ["default", "female", "male"]
    assert (await actor.get("/v1/tts/voices")).json() == {
        "language": "tr",
        "voices": [{"id": "default", "label": "Default"}],
    }
    assert (await actor.get("/v1/tts/voices?language=de")).json()["voices"] == []
    spoken = [
        (await actor.post("/v1/tts", json={"text": "Hello there.", "language": "en", "voice": voice})).body
        for voice in ("default", "female", "male", "nonsense")
    ]
    assert len({*spoken[:3]}) == 3
    assert spoken[3] == spoken[0]


async def test_neural_voice(start_platform: Start) -> None:
    """The packaged Piper voice speaks English when it is chosen; other languages fall back to the program."""
    actor = await (await start_platform("speech", env={"TTS_ENGINE": "piper"})).user()
    english = await actor.post("/v1/tts", json={"text": "Good morning, everybody.", "language": "en"})
    assert english.headers["X-Engine"] == "piper"
    samples, rate = read(english.body)
    assert rate == 22050
    assert 0.8 < len(samples) / rate < 4
    assert 0.05 < np.abs(samples).max() < 1.0
    german = await actor.post("/v1/tts", json={"text": "Guten Morgen.", "language": "de"})
    assert german.headers["X-Engine"] == "espeak-ng"


@pytest.mark.parametrize(
    ("body", "where", "says"),
    [
        ({"text": "   "}, ["body", "text"], "blank"),
        ({"text": ""}, ["body", "text"], " 1 "),
        ({}, ["body", "text"], "required"),
        ({"text": "a" * 5001}, ["body", "text"], " 5000 "),
        ({"text": "Hi", "language": "xx"}, ["body", "language"], "tr, en"),
        ({"text": "Hi", "format": "ogg"}, ["body", "format"], "wav"),
    ],
)
async def test_refusals_name_the_field(
    actor: Actor, body: dict[str, str], where: list[str], says: str
) -> None:
    answer = await actor.post("/v1/tts", json=body)
    assert answer.status == 422
    assert answer.detail[0]["loc"] == where
    assert says.lower() in answer.detail[0]["msg"].lower()


async def test_markup_and_options_are_spoken_as_text(actor: Actor) -> None:
    plain = await actor.post("/v1/tts", json={"text": "silence", "language": "en"})
    for text in (
        '<speak><break time="60s"/>silence</speak>',
        "$(touch /tmp/owned); `id` | silence",
        "--version -f /etc/passwd silence",
        "[[silence]] silence",
    ):
        answer = await actor.post("/v1/tts", json={"text": text, "language": "en"})
        assert answer.status == 200
        seconds = float(answer.headers["X-Audio-Seconds"])
        assert float(plain.headers["X-Audio-Seconds"]) < seconds < 20


async def test_openai_shape(actor: Actor) -> None:
    """OpenAI's clients get MP3 unless they ask for WAV."""
    body = {"model": "tts-1", "input": "Good morning.", "voice": "alloy"}
    spoken = await actor.post("/v1/ai/audio/speech", json=body)
    assert (spoken.status, spoken.headers["Content-Type"]) == (200, "audio/mpeg")
    spoken = await actor.post("/v1/ai/audio/speech", json={**body, "response_format": "wav"})
    assert len(read(spoken.body)[0]) > 5000
    blank = await actor.post("/v1/ai/audio/speech", json={**body, "input": " "})
    assert blank.detail[0]["loc"] == ["body", "input"]


async def test_metrics_and_health(running: Running, actor: Actor) -> None:
    """Requests are counted by language and outcome; the service lists its engines."""
    await actor.post("/v1/tts", json={"text": "Hi.", "language": "en"})
    metrics = (await running.anonymous.get("/metrics")).body.decode()
    assert 'tts_requests_total{language="en",status="success"} 1.0' in metrics
    checks = (await running.anonymous.get("/health")).json()["checks"]
    assert (checks["tts_engine"], checks["stt_engine"], checks["engines"]) == ("healthy",) * 3
