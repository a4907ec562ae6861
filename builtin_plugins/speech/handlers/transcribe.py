"""Routes of speech to text."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from aiohttp import web

from builtin_plugins.inference.api import OPENAI_ERRORS
from builtin_plugins.speech.errors import AudioUnreadable, CannotTranscribe, RecordingTooLong, TooBusy
from builtin_plugins.speech.languages import REGIONS
from builtin_plugins.speech.schemas import OpenAiTranscript, TranscriptionLanguagesOut, TranscriptOut
from builtin_plugins.speech.services.transcribing import TRANSCRIBING
from builtin_plugins.speech.settings import SpeechSettings
from kernel.sdk import (
    AUTHENTICATED,
    PUBLIC,
    Context,
    PayloadTooLarge,
    RouteTable,
    Unprocessable,
    Upload,
    receive_file,
)

routes = RouteTable("Speech to text", token_scopes=("ask",))
openai_routes = RouteTable("Speech to text", service="orchestrator", optional=True, token_scopes=("ask",))

_ERRORS = (
    *(Unprocessable, PayloadTooLarge, AudioUnreadable, RecordingTooLong, CannotTranscribe, TooBusy),
    415,
    408,
)
_LANGUAGE = {"type": "string", "description": "Regional code such as en-US; DEFAULT_STT_LANG if not given."}
_MODEL = {
    "type": "string",
    "description": "OpenAI's clients send it. It is ignored: the engine is a setting.",
}
_FILE = "A recording with its file name: WAV, FLAC, OGG, MP3, and with ffmpeg installed WebM and M4A."
_EXAMPLE = {"file": "meeting.wav", "language": "en-US"}
_UPLOAD = Upload(fields={"language": _LANGUAGE}, file=_FILE, example=_EXAMPLE)
_FORMATS = ("json", "text", "verbose_json")
_FORMAT: dict[str, Any] = {
    "type": "string",
    "enum": list(_FORMATS),
    "description": "`text` returns plain text; `verbose_json` is the same as `json`, as no timestamps "
    "are known.",
}
_OPENAI_FIELDS = {"language": _LANGUAGE, "model": _MODEL, "response_format": _FORMAT}
_OPENAI_UPLOAD = Upload(fields=_OPENAI_FIELDS, file=_FILE, example=_EXAMPLE)
_BY_BASE = {region.partition("-")[0]: region for region in REGIONS}


@routes.post("/stt", access=AUTHENTICATED, body=_UPLOAD, returns=TranscriptOut, errors=_ERRORS, long=True)
async def transcribe(ctx: Context) -> TranscriptOut:
    """Transcribe a recording: WAV, FLAC, OGG, MP3, and with ffmpeg installed WebM and M4A."""
    return (await _transcribed(ctx, ("language",)))[0]


@openai_routes.post(
    "/v1/ai/audio/transcriptions",
    access=AUTHENTICATED,
    body=_OPENAI_UPLOAD,
    returns=OpenAiTranscript,
    also_media_types=("text/plain",),
    errors=_ERRORS,
    long=True,
    error_format=OPENAI_ERRORS,
)
async def transcribe_openai(ctx: Context) -> OpenAiTranscript | web.Response:
    """Transcribe a recording, in the shape of OpenAI's audio API."""
    transcript, response_format = await _transcribed(ctx, ("language", "response_format"))
    if response_format == "text":
        return web.Response(text=f"{transcript.text}\n")
    return OpenAiTranscript(text=transcript.text)


@routes.get("/stt/languages", access=PUBLIC, returns=TranscriptionLanguagesOut)
async def languages(ctx: Context) -> TranscriptionLanguagesOut:
    """List the languages of recordings, and which engine transcribes which."""
    transcribing = ctx.resource(TRANSCRIBING)
    return TranscriptionLanguagesOut(
        languages=REGIONS,
        auto_detect=True,
        default=ctx.settings_of(SpeechSettings).default_stt_language,
        available=bool(await transcribing.available()),
        engines=await transcribing.engines(),
    )


async def _transcribed(ctx: Context, fields: Collection[str]) -> tuple[TranscriptOut, str]:
    """What was understood, and the format that the form asks for."""
    settings = ctx.settings_of(SpeechSettings)
    received = await receive_file(ctx, settings.max_audio_size_mb, fields)
    try:
        response_format = received.fields.get("response_format", "").strip() or "json"
        if response_format not in _FORMATS:
            raise Unprocessable.field(
                ("body", "response_format"), f"must be one of: {', '.join(_FORMATS)}", response_format[:40]
            )
        region = _region(received.fields.get("language", "").strip(), settings.default_stt_language)
        if received.staged.size == 0:
            raise Unprocessable.field(("body", "file"), "the file is empty")
        heard, engine = await ctx.resource(TRANSCRIBING).transcribe(received.staged.path, region)
    finally:
        received.staged.discard()
    transcript = TranscriptOut(text=heard.text, language=region, confidence=heard.confidence, engine=engine)
    return transcript, response_format


def _region(sent: str, default: str) -> str:
    """A regional code; a language's code, as OpenAI's clients send it, means the region listed here."""
    region = _BY_BASE.get(sent, sent or default)
    if region not in REGIONS:
        raise Unprocessable.field(("body", "language"), f"must be one of: {', '.join(REGIONS)}", sent[:40])
    return region
