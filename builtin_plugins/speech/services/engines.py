"""The available engines, and which of them is preferred."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Protocol, TypeVar

from pydantic import SecretStr

from builtin_plugins.speech import api
from builtin_plugins.speech.engines.espeak import Espeak
from builtin_plugins.speech.engines.piper import Piper
from builtin_plugins.speech.engines.plugin_engines import OfferedSpeaker, OfferedTranscriber
from builtin_plugins.speech.engines.protocol import Speaker, Transcriber
from builtin_plugins.speech.engines.remote import RemoteServer, RemoteSpeaker, RemoteTranscriber
from builtin_plugins.speech.engines.sphinx import Sphinx
from builtin_plugins.speech.engines.whisper import Whisper
from builtin_plugins.speech.services.speaking import Speaking
from builtin_plugins.speech.services.transcribing import Transcribing
from builtin_plugins.speech.services.turns import SpeechTurns
from builtin_plugins.speech.settings import SpeechSettings
from kernel.sdk import OUTGOING, CallLimits, Children, Platform, StartupError


class _Named(Protocol):
    name: str


_MOST_BYTES = 64 * 1024 * 1024

E = TypeVar("E", bound=_Named)


@asynccontextmanager
async def open_speaking(platform: Platform) -> AsyncIterator[Speaking]:
    """The engines that speak: those of other plugins, a server, the program, neural voices."""
    settings = platform.settings_of(SpeechSettings)
    async with AsyncExitStack() as stack:
        children = await stack.enter_async_context(aclosing(Children()))
        server = await _server(stack, platform, settings.tts_url, settings.tts_model, settings.tts_key)
        espeak = Espeak(children)
        offers = platform.hooks.ask_now(api.offer_speakers, platform)
        seconds = settings.remote_seconds
        offered = [OfferedSpeaker(plugin, engine, seconds) for plugin, more in offers for engine in more]
        speakers: Sequence[Speaker] = [
            *offered,
            RemoteSpeaker(server),
            espeak,
            Piper(espeak, settings.voices_dir),
        ]
        ordered = _preferred(speakers, settings.tts_engine, "TTS_ENGINE")
        yield Speaking(platform, ordered, SpeechTurns(settings.concurrency, settings.waiting))


@asynccontextmanager
async def open_transcribing(platform: Platform) -> AsyncIterator[Transcribing]:
    """The engines that transcribe: those of plugins, a server, an operator's model, pocketsphinx."""
    settings = platform.settings_of(SpeechSettings)
    async with AsyncExitStack() as stack:
        children = await stack.enter_async_context(aclosing(Children(["builtin_plugins.speech.audio.child"])))
        server = await _server(stack, platform, settings.stt_url, settings.stt_model, settings.stt_key)
        offers = platform.hooks.ask_now(api.offer_transcribers, platform)
        seconds = settings.remote_seconds
        offered = [OfferedTranscriber(plugin, engine, seconds) for plugin, more in offers for engine in more]
        whisper = Whisper(children, settings.whisper_model)
        own: Sequence[Transcriber] = (RemoteTranscriber(server), whisper, Sphinx(children))
        transcribers: Sequence[Transcriber] = [*offered, *own]
        ordered = _preferred(transcribers, settings.stt_engine, "STT_ENGINE")
        turns = SpeechTurns(settings.concurrency, settings.waiting)
        yield Transcribing(platform, ordered, turns, children, settings.max_audio_seconds)


async def _server(
    stack: AsyncExitStack, platform: Platform, url: str | None, model: str, key: SecretStr | None
) -> RemoteServer | None:
    if url is None:
        return None
    limits = CallLimits(platform.settings_of(SpeechSettings).remote_seconds, body_bytes=_MOST_BYTES)
    client = await stack.enter_async_context(
        platform.resource(OUTGOING).client("speech", named=[url], limits=limits)
    )
    return RemoteServer(client, url, model, key)


def _preferred(engines: Sequence[E], name: str, setting: str) -> list[E]:
    """The engines, with the named one first; the others serve languages that it lacks."""
    names = [engine.name for engine in engines]
    if name != "auto" and name not in names:
        raise StartupError(f"{setting}={name} is not a speech engine; choose auto, {', '.join(names)}")
    return sorted(engines, key=lambda engine: engine.name != name)
