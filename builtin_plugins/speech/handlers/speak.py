"""Routes of text to speech."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from aiohttp import web
from pydantic import BaseModel, Field

from builtin_plugins.inference.api import OPENAI_ERRORS
from builtin_plugins.speech.audio.writing import MEDIA_TYPES, encoder, whole_file
from builtin_plugins.speech.engines.protocol import Sound
from builtin_plugins.speech.errors import CannotSpeak, TooBusy
from builtin_plugins.speech.languages import NAMES
from builtin_plugins.speech.schemas import LanguagesOut, SpeakRequest, SpeechRequest, VoiceOut, VoicesOut
from builtin_plugins.speech.services.speaking import SPEAKING, Spoken, Utterance
from builtin_plugins.speech.settings import AudioFormat, SpeechSettings
from kernel.sdk import AUTHENTICATED, PUBLIC, Context, RouteTable, Unprocessable

routes = RouteTable("Text to speech", token_scopes=("ask",))
openai_routes = RouteTable("Text to speech", service="orchestrator", optional=True, token_scopes=("ask",))

# Shorter texts are sent whole, with a length that players can show.
_WHOLE_CHARS = 500
_CHARS_A_SECOND = 15


class VoicesQuery(BaseModel):
    """The language of the voices."""

    language: str | None = Field(None, description="Language code; DEFAULT_TTS_LANG if not given.")


@routes.post(
    "/tts",
    access=AUTHENTICATED,
    body=SpeakRequest,
    media_type="audio/wav",
    also_media_types=("audio/mpeg",),
    returns=bytes,
    errors=(Unprocessable, CannotSpeak, TooBusy),
    long=True,
)
async def speak(ctx: Context, body: SpeakRequest) -> web.StreamResponse:
    """Speak a text. Long texts are streamed sentence by sentence."""
    language = body.language or ctx.settings_of(SpeechSettings).default_tts_language
    utterance = Utterance(body.text, language, body.voice, body.slow)
    return await _answer(ctx, utterance, "text", body.format or _accepted(ctx.request))


@openai_routes.post(
    "/v1/ai/audio/speech",
    access=AUTHENTICATED,
    body=SpeechRequest,
    media_type="audio/mpeg",
    also_media_types=("audio/wav",),
    returns=bytes,
    errors=(Unprocessable, CannotSpeak, TooBusy),
    long=True,
    error_format=OPENAI_ERRORS,
)
async def speak_openai(ctx: Context, body: SpeechRequest) -> web.StreamResponse:
    """Speak a text, in the shape of OpenAI's audio API."""
    utterance = Utterance(body.input, body.language, body.voice, body.speed < 0.9)
    return await _answer(ctx, utterance, "input", body.response_format)


@routes.get("/tts/languages", access=PUBLIC, returns=LanguagesOut)
async def languages(ctx: Context) -> LanguagesOut:
    """List the languages that can be spoken."""
    available = await ctx.resource(SPEAKING).available()
    return LanguagesOut(
        languages=NAMES,
        default=ctx.settings_of(SpeechSettings).default_tts_language,
        available=bool(available),
        engines=[speaker.name for speaker in available],
    )


@routes.get("/tts/voices", access=PUBLIC, query=VoicesQuery, returns=VoicesOut, errors=(Unprocessable,))
async def voices(ctx: Context, query: VoicesQuery) -> VoicesOut:
    """List the voices of a language; none where its engine has only one."""
    language = query.language or ctx.settings_of(SpeechSettings).default_tts_language
    _check_language(language, ("query", "language"))
    entries = await ctx.resource(SPEAKING).voices(language)
    return VoicesOut(language=language, voices=[VoiceOut(id=id, label=label) for id, label in entries])


async def _answer(ctx: Context, utterance: Utterance, field: str, kind: AudioFormat) -> web.StreamResponse:
    _check(ctx, utterance, field)
    speaking = ctx.resource(SPEAKING)
    try:
        spoken = await speaking.speak(utterance)
        async with aclosing(spoken.sounds):
            if len(utterance.text) <= _WHOLE_CHARS:
                answer: web.StreamResponse = await _whole(utterance, spoken, kind)
            else:
                answer = await _streamed(ctx.request, utterance, spoken, kind)
    except BaseException:  # a caller that leaves before the end counts, too
        speaking.count(utterance.language, good=False)
        raise
    speaking.count(utterance.language, good=True)
    return answer


def _check(ctx: Context, utterance: Utterance, field: str) -> None:
    limit = ctx.settings_of(SpeechSettings).max_text_length
    if not utterance.text.strip():
        raise Unprocessable.field(("body", field), "must not be blank")
    if len(utterance.text) > limit:
        raise Unprocessable.field(("body", field), f"must have at most {limit} characters")
    _check_language(utterance.language, ("body", "language"))


def _check_language(language: str, where: tuple[str, str]) -> None:
    if language not in NAMES:
        raise Unprocessable.field(where, f"must be one of: {', '.join(NAMES)}", language[:40])


def _accepted(request: web.Request) -> AudioFormat:
    """MP3 if the client asks for it, otherwise WAV."""
    accept = request.headers.get("Accept", "").lower()
    return "mp3" if any(kind in accept for kind in ("audio/mpeg", "audio/mp3")) else "wav"


async def _whole(utterance: Utterance, spoken: Spoken, kind: AudioFormat) -> web.Response:
    sounds = [sound async for sound in spoken.sounds]
    sound = Sound(b"".join(item.samples for item in sounds), sounds[0].rate)
    body = await asyncio.to_thread(whole_file, kind, sound)
    return web.Response(body=body, headers=_headers(utterance, spoken, kind, sound.seconds))


async def _streamed(
    request: web.Request, utterance: Utterance, spoken: Spoken, kind: AudioFormat
) -> web.StreamResponse:
    # An error in the first sentence can still be an ordinary error response.
    first = await anext(spoken.sounds)
    audio_encoder = await asyncio.to_thread(encoder, kind, first.rate)
    response = web.StreamResponse(headers=_headers(utterance, spoken, kind))
    await response.prepare(request)
    await response.write(await asyncio.to_thread(audio_encoder.add, first.samples))
    async for sound in spoken.sounds:
        await response.write(await asyncio.to_thread(audio_encoder.add, sound.samples))
    await response.write(await asyncio.to_thread(audio_encoder.finish))
    await response.write_eof()
    return response


def _headers(
    utterance: Utterance, spoken: Spoken, kind: AudioFormat, seconds: float | None = None
) -> dict[str, str]:
    """`X-Duration` is the estimate that old clients read; the real length is given if known."""
    headers = {
        "Content-Type": MEDIA_TYPES[kind],
        "Content-Disposition": f"attachment; filename=speech.{kind}",
        "X-Language": utterance.language,
        "X-Duration": str(round(len(utterance.text) / _CHARS_A_SECOND, 2)),
        "X-Engine": spoken.engine,
        "X-Accel-Buffering": "no",
    }
    return headers if seconds is None else {**headers, "X-Audio-Seconds": f"{seconds:.3f}"}
