"""The kind `webdav`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import encode_basic_auth, hdrs
from yarl import URL

from builtin_plugins.source_webdav.guarded import SharedSource
from builtin_plugins.source_webdav.server import WebdavSource
from builtin_plugins.source_webdav.settings import WebdavSettings
from builtin_plugins.sources.api import DocumentSource, SourceKind, SourceSetup
from kernel.sdk import OUTGOING


@asynccontextmanager
async def open_webdav(setup: SourceSetup) -> AsyncIterator[DocumentSource]:
    """Open a source of this kind."""
    settings = WebdavSettings.model_validate(setup.settings.model_dump())
    headers = dict[str, str]()
    if settings.user or setup.secret is not None:
        password = setup.secret.get_secret_value() if setup.secret is not None else ""
        headers[hdrs.AUTHORIZATION] = encode_basic_auth(settings.user, password)
    root = URL(settings.url)
    async with setup.platform.resource(OUTGOING).client("source_webdav") as client:
        place = root if root.raw_path.endswith("/") else root / ""
        if settings.rights == "nextcloud":
            yield SharedSource(client, place, headers, settings.email_domain)
        else:
            yield WebdavSource(client, place, headers)


WEBDAV: Final = SourceKind(
    "webdav",
    "WebDAV or Nextcloud",
    WebdavSettings,
    open_webdav,
    secret="Password",
    guarded=lambda settings: WebdavSettings.model_validate(settings.model_dump()).rights == "nextcloud",
)
