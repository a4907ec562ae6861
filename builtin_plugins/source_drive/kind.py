"""The kind `drive`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from builtin_plugins.source_drive.credential import open_token
from builtin_plugins.source_drive.drive import DriveSource
from builtin_plugins.source_drive.files import DriveApi
from builtin_plugins.source_drive.guarded import GuardedDrive
from builtin_plugins.source_drive.settings import DriveSettings
from builtin_plugins.sources.api import DocumentSource, JsonApi, SourceKind, SourceSetup
from kernel.sdk import OUTGOING

_BUSY: Final = ("userRateLimitExceeded", "rateLimitExceeded", "sharingRateLimitExceeded")


@asynccontextmanager
async def open_drive(setup: SourceSetup) -> AsyncIterator[DocumentSource]:
    """Open a source of this kind. Raises CredentialRefused."""
    settings = DriveSettings.model_validate(setup.settings.model_dump())
    async with setup.platform.resource(OUTGOING).client("source_drive") as client:
        token = open_token(client, settings, setup.secret)
        api = DriveApi(JsonApi(client, "Google", token.headers, _BUSY), settings)
        yield (GuardedDrive if settings.rights == "drive" else DriveSource)(api, settings)


DRIVE: Final = SourceKind(
    "drive",
    "Google Drive (untested with the real service)",
    DriveSettings,
    open_drive,
    secret="Key (JSON)",
    guarded=lambda settings: DriveSettings.model_validate(settings.model_dump()).rights == "drive",
)
