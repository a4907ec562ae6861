"""What the service reports about its engines (wire-facts 2.1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from builtin_plugins.speech.engines.protocol import Speaker, Transcriber
from builtin_plugins.speech.services.speaking import SPEAKING
from builtin_plugins.speech.services.transcribing import TRANSCRIBING
from builtin_plugins.speech.settings import SpeechSettings
from kernel.sdk import HealthCheck, NotConfigured, Platform, Unhealthy
from kernel.sdk.telemetry import NotInstalled


async def health_fields(platform: Platform) -> dict[str, bool]:
    """Whether anything can be spoken, and transcribed."""
    return {
        "tts_available": bool(await platform.resource(SPEAKING).available()),
        "stt_available": bool(await platform.resource(TRANSCRIBING).available()),
    }


def checks() -> Sequence[HealthCheck]:
    """The service is down only if it can neither speak nor transcribe."""
    return [
        HealthCheck("tts_engine", _can_speak, service="tts-stt"),
        HealthCheck("stt_engine", _can_transcribe, service="tts-stt"),
        HealthCheck("engines", _can_anything, critical=True, service="tts-stt"),
    ]


async def _can_speak(platform: Platform) -> None:
    speaking = platform.resource(SPEAKING)
    setting = platform.settings_of(SpeechSettings).tts_engine
    await _check(setting, "speak", await speaking.available(), speaking.remedy)


async def _can_transcribe(platform: Platform) -> None:
    transcribing = platform.resource(TRANSCRIBING)
    setting = platform.settings_of(SpeechSettings).stt_engine
    await _check(setting, "transcribe", await transcribing.available(), transcribing.remedy)


async def _check(
    setting: str,
    verb: str,
    available: Sequence[Speaker] | Sequence[Transcriber],
    remedy: Callable[[], Awaitable[str]],
) -> None:
    """No engine at all is a choice, unless the operator named one."""
    names = [engine.name for engine in available]
    if setting != "auto" and setting not in names:
        raise Unhealthy(f"{setting} can't {verb}: {await remedy()}")
    if not names:
        raise NotConfigured()


async def _can_anything(platform: Platform) -> None:
    if not any((await health_fields(platform)).values()):
        raise NotInstalled("no engine can speak or transcribe; install espeak-ng or pocketsphinx")
