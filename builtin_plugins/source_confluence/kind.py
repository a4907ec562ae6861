"""The kind `confluence`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import encode_basic_auth, hdrs
from yarl import URL

from builtin_plugins.source_confluence.editions import Cloud, DataCenter, Edition
from builtin_plugins.source_confluence.guarded import GuardedWiki
from builtin_plugins.source_confluence.settings import ConfluenceSettings
from builtin_plugins.source_confluence.wiki import WikiSource
from builtin_plugins.sources.api import DocumentSource, JsonApi, SourceKind, SourceSetup, constant_headers
from kernel.sdk import OUTGOING


@asynccontextmanager
async def open_confluence(setup: SourceSetup) -> AsyncIterator[DocumentSource]:
    """Open a source of this kind."""
    settings = ConfluenceSettings.model_validate(setup.settings.model_dump())
    headers: dict[str, str] = {hdrs.ACCEPT: "application/json"}
    if setup.secret is not None:
        token = setup.secret.get_secret_value()
        headers[hdrs.AUTHORIZATION] = (
            encode_basic_auth(settings.user, token) if settings.user else f"Bearer {token}"
        )
    async with setup.platform.resource(OUTGOING).client("source_confluence") as client:
        api = JsonApi(client, "Confluence", constant_headers(headers))
        edition = _edition(api, settings)
        guarded = settings.rights == "confluence"
        yield (GuardedWiki if guarded else WikiSource)(edition, settings)


def _edition(api: JsonApi, settings: ConfluenceSettings) -> Edition:
    base = URL(settings.url)
    if settings.edition == "data_center":
        return DataCenter(api, base, settings.email_domain, anonymous=settings.anonymous)
    return Cloud(api, base, anonymous=settings.anonymous)


CONFLUENCE: Final = SourceKind(
    "confluence",
    "Confluence (untested with the real service)",
    ConfluenceSettings,
    open_confluence,
    secret="API token",
    guarded=lambda settings: ConfluenceSettings.model_validate(settings.model_dump()).rights == "confluence",
)
