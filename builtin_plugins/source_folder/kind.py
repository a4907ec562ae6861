"""The kind `folder`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from builtin_plugins.source_folder.folder import FolderSource, allowed_folder
from builtin_plugins.source_folder.guarded_folder import GuardedFolderSource
from builtin_plugins.source_folder.name_service import NameService
from builtin_plugins.source_folder.settings import FolderSettings, SourceFolderSettings
from builtin_plugins.source_folder.watching import watch_folder
from builtin_plugins.sources.api import DocumentSource, SourceKind, SourceSetup, SourceUnreachable
from kernel.sdk import split_list


@asynccontextmanager
async def open_folder(setup: SourceSetup) -> AsyncIterator[DocumentSource]:
    """Open a source of this kind. Raises SourceMisplaced, SourceUnreachable."""
    settings = _settings(setup.settings)
    place = await asyncio.to_thread(_place, setup)
    if settings.rights == "posix":
        yield GuardedFolderSource(place, settings.email_domain, NameService())
    else:
        yield FolderSource(place)


def _place(setup: SourceSetup) -> Path:
    allowed = split_list(setup.platform.settings_of(SourceFolderSettings).source_folders)
    place = allowed_folder(_settings(setup.settings).path, allowed)
    if not os.path.isdir(place):  # noqa: PTH112 - `Path.is_dir` raises for a name that is too long
        raise SourceUnreachable("The folder is not there, or the server may not see it")
    return place


async def watch(setup: SourceSetup) -> AsyncGenerator[None]:
    """Changes of such a source. Raises SourceFault."""
    place = await asyncio.to_thread(_place, setup)
    async with aclosing(watch_folder(place)) as changes:
        async for _ in changes:
            yield


def _settings(settings: BaseModel) -> FolderSettings:
    return FolderSettings.model_validate(settings.model_dump())


FOLDER: Final = SourceKind(
    "folder",
    "Folder on the server",
    FolderSettings,
    open_folder,
    guarded=lambda settings: _settings(settings).rights == "posix",
    watch=watch,
)
