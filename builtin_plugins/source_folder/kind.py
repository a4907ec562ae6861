"""The kind `folder`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from pydantic import BaseModel

from builtin_plugins.source_folder.folder import FolderSource, allowed_folder
from builtin_plugins.source_folder.guarded_folder import GuardedFolderSource
from builtin_plugins.source_folder.name_service import NameService
from builtin_plugins.source_folder.settings import FolderSettings, SourceFolderSettings
from builtin_plugins.sources.api import DocumentSource, SourceKind, SourceSetup, SourceUnreachable
from kernel.sdk import split_list


@asynccontextmanager
async def open_folder(setup: SourceSetup) -> AsyncIterator[DocumentSource]:
    """Open a source of this kind. Raises SourceMisplaced, SourceUnreachable."""
    settings = _settings(setup.settings)
    allowed = split_list(setup.platform.settings_of(SourceFolderSettings).source_folders)
    place = await asyncio.to_thread(allowed_folder, settings.path, allowed)
    if not await asyncio.to_thread(os.path.isdir, place):
        raise SourceUnreachable("The folder is not there, or the server may not see it")
    if settings.rights == "posix":
        yield GuardedFolderSource(place, settings.email_domain, NameService())
    else:
        yield FolderSource(place)


def _settings(given: BaseModel) -> FolderSettings:
    return FolderSettings.model_validate(given.model_dump())


FOLDER: Final = SourceKind(
    "folder",
    "Folder on the server",
    FolderSettings,
    open_folder,
    guarded=lambda settings: _settings(settings).rights == "posix",
)
