"""Many callers at once, programs that die or are missing, recordings that are too long."""

from __future__ import annotations

import asyncio
import io
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernel.sdk import Platform, Plugin, hookimpl
from kernel.testing import Actor, Running, Start
from tests.builtin_plugins.speech.test_transcribing import packed, send

CALLERS = 20
SENTENCES = 4
SHORT = 600  # characters beyond which texts are streamed


class Slow:
    """An engine that keeps who was served when, and how many at once."""

    name = "slow"

    def __init__(self) -> None:
        self.served: list[str] = []
        self.at_once = self.most = 0
        self.begun = asyncio.Event()

    async def missing(self) -> str | None:
        return None

    def voices(self) -> dict[str, Sequence[tuple[str, str]]]:
        return {"en": []}

    async def speak(self, text: str, language: str, voice: str | None, slow: bool) -> tuple[bytes, int]:
        self.served.append(text)
        self.begun.set()
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(0.01)
        self.at_once -= 1
        return bytes(1600), 8000


class Raising(Plugin):
    """Offers no voices, but trouble."""

    name = "raising"
    requires = ("speech",)

    @hookimpl
    def offer_speakers(self) -> Any:
        raise KeyError("voices")


class Misnaming(Plugin):
    """Offers names of engines instead of engines."""

    name = "misnaming"
    requires = ("speech",)

    @hookimpl
    def offer_transcribers(self) -> Any:
        return ["whisper"]


async def test_plugins_whose_offers_fail(start_platform: Start) -> None:
    """They stay out of service, each with its reason: nobody asks for what they have until the next start.
    The engines of everybody else are there.
    """
    running = await start_platform("speech", Raising, Misnaming)
    found = (await running.anonymous.get("/health")).json()
    assert found["plugins"]["speech"] == {"status": "loaded", "reason": None}
    assert found["plugins"]["raising"]["status"] == found["plugins"]["misnaming"]["status"] == "failed"
    assert found["plugins"]["raising"]["reason"] == "offer_speakers raised KeyError: 'voices'"
    assert "misnaming: offer_transcribers " in found["checks"]["plugins"]
    assert (await (await running.user()).get("/v1/tts/voices")).status == 200


class Faulty:
    """Speaks English; fails where it is told to."""

    name = "faulty"
    fault = ""

    async def missing(self) -> str | None:
        if self.fault == "missing":
            raise RuntimeError("secret")
        return None

    def voices(self) -> dict[str, list[tuple[str, str]]]:
        if self.fault == "voices":
            raise RuntimeError("secret")
        voices = {"en": [("faulty", "Faulty")]}
        return None if self.fault == "no voices" else voices  # type: ignore[return-value]

    async def speak(self, text: str, language: str, voice: str | None, slow: bool) -> tuple[bytes, int]:
        if self.fault == "speak":
            raise RuntimeError("secret")
        if self.fault == "hangs":
            await asyncio.Event().wait()
        return bytes(1600), 0 if self.fault == "rate" else 8000


class FaultyPlugin(Plugin):
    """Brings it."""

    name = "faulty_engine"

    def __init__(self) -> None:
        self.engine = Faulty()

    @hookimpl(optionalhook=True)
    def offer_speakers(self, platform: Platform) -> list[Faulty]:
        return [self.engine]


@pytest.mark.parametrize("fault", ["missing", "voices", "no voices", "speak", "rate", "hangs"])
async def test_an_engine_that_fails(
    start_platform: Start, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    """Its plugin is named to the caller and in the log; what doesn't need the engine works."""
    plugin = FaultyPlugin()
    running = await start_platform("speech", plugin, env={"PLATFORM_SPEECH_REMOTE_SECONDS": "0.2"})
    actor = await running.user()
    plugin.engine.fault = fault
    named = fault in ("speak", "rate", "hangs")
    answer = await speak(actor, "Hello there.", voice="faulty")
    assert (await actor.get("/v1/tts/voices")).status == 200
    assert "the plugin 'faulty_engine' failed" in caplog.text
    assert answer.status in ((503,) if named else (200, 422, 503))
    assert "secret" not in answer.body.decode(errors="replace")
    if named:
        assert "the plugin 'faulty_engine' failed" in answer.detail


class SlowPlugin(Plugin):
    """Brings it."""

    name = "slow_engine"
    version = "1"

    def __init__(self) -> None:
        self.engine = Slow()

    @hookimpl(optionalhook=True)
    def offer_speakers(self, platform: Platform) -> list[Slow]:
        return [self.engine]


async def speak(actor: Actor, text: str, **more: Any) -> Any:
    return await actor.post("/v1/tts", json={"text": text, "language": "en", **more})


async def test_twenty_callers_at_once(start_platform: Start) -> None:
    """Two are served at a time, sentence by sentence in turn; nobody waits for another's whole text, and
    other routes answer meanwhile."""
    plugin = SlowPlugin()
    actor = await (await start_platform("speech", plugin)).user()
    letters = [chr(ord("a") + number) for number in range(CALLERS)]
    # Each sentence is one word of its caller's letter, and each text is long enough to be streamed.
    texts = {letter: " ".join(f"{letter * 160}." for _ in range(SENTENCES)) for letter in letters}
    speaking = [asyncio.create_task(speak(actor, text)) for text in texts.values()]
    await plugin.engine.begun.wait()
    assert (await actor.get("/health")).status == 200
    assert not all(task.done() for task in speaking)
    answers = await asyncio.gather(*speaking)
    assert [answer.status for answer in answers] == [200] * CALLERS
    assert plugin.engine.most == 2
    order = [text[0] for text in plugin.engine.served]
    assert len(order) == CALLERS * SENTENCES
    # Nobody is more than a sentence and a turn ahead of anybody.
    for number in range(1, SENTENCES + 1):
        seen = order[: number * CALLERS]
        assert max(seen.count(letter) for letter in letters) <= number + 1
        assert min(seen.count(letter) for letter in letters) >= number - 1


async def test_a_queue_that_is_full(start_platform: Start) -> None:
    """More callers than may wait are sent away at once, with when to come back; the others are served."""
    plugin = SlowPlugin()
    env = {"PLATFORM_SPEECH_CONCURRENCY": "1", "PLATFORM_SPEECH_WAITING": "4"}
    actor = await (await start_platform("speech", plugin, env=env)).user()
    answers = await asyncio.gather(*(speak(actor, f"Hello {number}.") for number in range(CALLERS)))
    statuses = [answer.status for answer in answers]
    assert statuses.count(200) >= 5 and set(statuses) == {200, 503}
    refused = next(answer for answer in answers if answer.status == 503)
    assert refused.json()["code"] and refused.headers["Retry-After"]


def program(folder: Path, script: str) -> None:
    path = folder / "espeak-ng"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


async def test_the_program_is_missing(
    start_platform: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503 with what to install; the lists say that nothing can be spoken, and transcribing goes on."""
    monkeypatch.setenv("PATH", str(tmp_path))
    actor = await (await start_platform("speech")).user()
    answer = await speak(actor, "Hello.", language="de")
    assert answer.status == 503 and "espeak-ng" in answer.detail
    assert (await actor.get("/v1/tts/languages")).json()["available"] is False
    checks = (await actor.get("/health")).json()["checks"]
    assert (checks["tts_engine"], checks["stt_engine"]) == ("not configured", "healthy")


@pytest.mark.parametrize(
    ("script", "streamed"),
    [
        ("exit 1", False),
        ("kill -9 $$", False),
        ("printf RIFF; kill -9 $$", False),
        ("cat > /dev/null; echo no sound", False),
        ("exit 1", True),
    ],
)
async def test_the_program_dies(
    start_platform: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, streamed: bool
) -> None:
    """503 with the remedy, nothing of the program's own words."""
    program(tmp_path, script)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    actor = await (await start_platform("speech")).user()
    answer = await speak(actor, "Hello there. " * (50 if streamed else 1), language="de")
    assert answer.status == 503, answer.body
    assert "espeak-ng" in answer.detail and "Traceback" not in answer.body.decode()


async def test_the_program_dies_in_the_middle(
    espeak: None, start_platform: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A streamed text breaks off, so that no client takes a part for the whole; the next one is fine."""
    program(
        tmp_path,
        'said=$(cat); case "$said" in *lamp*) kill -9 $$;; esac; echo "$said" | /usr/bin/espeak-ng "$@"',
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    actor = await (await start_platform("speech")).user()
    with pytest.raises(Exception) as broken:  # aiohttp's: the transfer was cut off
        ships = "The keeper counts the ships in the night. "
        await speak(actor, ships * 2 + "Then the lamp goes out. " + ships * 17)
    assert "TransferEncoding" in str(broken.value) or "payload" in str(broken.value).lower()
    assert (await speak(actor, "Hello.")).status == 200
    metrics = (await actor.get("/metrics")).body.decode()
    assert 'tts_requests_total{language="en",status="error"} 1.0' in metrics


async def test_an_hour_of_noise(running: Running) -> None:
    """Refused for its length before an engine hears a second of it."""
    actor = await running.user()
    header = bytearray(packed(np.zeros(0, dtype=np.int16), 100, "WAV")[:44])
    noise = np.random.default_rng(1).integers(-9000, 9000, 100 * 3600).astype("<i2").tobytes()
    header[4:8], header[40:44] = struct.pack("<I", 36 + len(noise)), struct.pack("<I", len(noise))
    answer = await send(actor, io.BytesIO(bytes(header) + noise))
    assert answer.status in (400, 413), answer.body
    real = np.random.default_rng(1).integers(-9000, 9000, 2_000 * 3600).astype("<i2")
    answer = await send(actor, io.BytesIO(packed(real, 2_000, "WAV")))
    assert (answer.status, answer.json()["code"]) == (413, "recording_too_long"), answer.body


@pytest.fixture
async def running(start_platform: Start) -> Running:
    """A platform with the offline engines."""
    return await start_platform("speech")
