"""The kind `sharepoint`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from pydantic import SecretStr
from yarl import URL

from builtin_plugins.source_sharepoint.graph import GraphApi
from builtin_plugins.source_sharepoint.guarded import GuardedLibraries
from builtin_plugins.source_sharepoint.libraries import LibrarySource
from builtin_plugins.source_sharepoint.settings import SharepointSettings
from builtin_plugins.sources.api import BearerToken, DocumentSource, JsonApi, SourceKind, SourceSetup
from kernel.sdk import OUTGOING


@asynccontextmanager
async def open_sharepoint(setup: SourceSetup) -> AsyncIterator[DocumentSource]:
    """Open a source of this kind."""
    settings = SharepointSettings.model_validate(setup.settings.model_dump())
    secret = (setup.secret or SecretStr("")).get_secret_value()
    form = {
        "grant_type": "client_credentials",
        "client_id": settings.client_id,
        "client_secret": secret,
        "scope": f"{settings.server}/.default",
    }
    tokens = URL(f"{settings.sign_in}/{settings.tenant}/oauth2/v2.0/token")
    async with setup.platform.resource(OUTGOING).client("source_sharepoint") as client:
        token = BearerToken(client, "Microsoft", tokens, lambda: form)

        async def authorize(is_refused: bool) -> Mapping[str, str]:
            # Otherwise, changes of a file come with all folders above it.
            return {**await token.headers(is_refused), "deltaExcludeParent": "true"}

        api = GraphApi(JsonApi(client, "Microsoft", authorize), settings)
        yield (GuardedLibraries if settings.rights == "sharepoint" else LibrarySource)(api)


SHAREPOINT: Final = SourceKind(
    "sharepoint",
    "SharePoint or OneDrive (untested with the real service)",
    SharepointSettings,
    open_sharepoint,
    secret="Client secret",
    guarded=lambda settings: SharepointSettings.model_validate(settings.model_dump()).rights == "sharepoint",
)
