"""Speech: the service `tts-stt`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from builtin_plugins.speech import api
from builtin_plugins.speech.handlers import speak, system, transcribe
from builtin_plugins.speech.mounts import SERVICE
from builtin_plugins.speech.services.engines import open_speaking, open_transcribing
from builtin_plugins.speech.services.health import checks, health_fields
from builtin_plugins.speech.services.speaking import SPEAKING
from builtin_plugins.speech.services.transcribing import TRANSCRIBING
from builtin_plugins.speech.settings import SpeechSettings
from kernel.sdk import (
    HealthCheck,
    Plugin,
    Resource,
    RouteTable,
    Service,
    hookimpl,
)


class SpeechPlugin(Plugin):
    """Text to speech and speech to text, offline by default."""

    name = "speech"
    version = system.VERSION
    description = "Text to speech and speech to text"
    author = "Platform"
    requires = ("inference",)

    @hookimpl
    def register_hookspecs(self) -> Sequence[object]:
        return [api]

    @hookimpl
    def register_settings(self) -> type[SpeechSettings]:
        return SpeechSettings

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Any]]:
        return [Resource(SPEAKING, open_speaking), Resource(TRANSCRIBING, open_transcribing)]

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return checks()

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [speak.openai_routes, transcribe.openai_routes]

    @hookimpl
    def register_services(self) -> Sequence[Service]:
        tables = (system.routes, speak.routes, transcribe.routes)
        return [replace(SERVICE, tables=tables, version=self.version, health_extra=health_fields)]
