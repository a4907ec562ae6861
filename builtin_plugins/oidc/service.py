"""The plugin's resource: single sign-on, set up from its settings."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from builtin_plugins.oidc.answers import BrowserAnswers
from builtin_plugins.oidc.errors import NotOffered
from builtin_plugins.oidc.settings import OidcSettings
from kernel.sdk import OUTGOING, CallLimits, Context, OutgoingClient, Platform, ResourceKey

if TYPE_CHECKING:
    from builtin_plugins.oidc.services.sign_in import SignIn
    from builtin_plugins.oidc.services.sign_out import SignOut

log = logging.getLogger("platform.oidc")

COOKIE_SECRET = "oidc-cookie"


@dataclass(frozen=True)
class Sso:
    """Single sign-on with one provider."""

    sign_in: SignIn
    sign_out: SignOut
    answers: BrowserAnswers


SSO: ResourceKey[Sso | None] = ResourceKey("single sign-on")


@asynccontextmanager
async def open_sso(platform: Platform) -> AsyncIterator[Sso | None]:
    """Single sign-on, or None if it is not offered. Makes no calls."""
    settings = platform.settings_of(OidcSettings)
    if settings.hidden_because is not None:
        if settings.issuer:
            log.warning("single sign-on is hidden: %s", settings.hidden_because)
        yield None
        return
    named = [url for url in (settings.issuer, settings.internal_url) if url]
    limits = CallLimits(total_seconds=settings.timeout)
    async with platform.resource(OUTGOING).client("oidc", named=named, limits=limits) as outgoing:
        yield _assemble(platform, settings, outgoing)


def _assemble(platform: Platform, settings: OidcSettings, outgoing: OutgoingClient) -> Sso:
    # Imported only with a provider, as these and their libraries are 120 modules.
    from builtin_plugins.oidc.services.client import ProviderClient
    from builtin_plugins.oidc.services.fetching import Fetcher
    from builtin_plugins.oidc.services.provider import Provider
    from builtin_plugins.oidc.services.seal import FlowSeal
    from builtin_plugins.oidc.services.sign_in import SignIn
    from builtin_plugins.oidc.services.sign_out import SignOut
    from builtin_plugins.oidc.services.tokens import TokenCheck

    fetcher = Fetcher(outgoing, settings)
    provider = Provider(fetcher, settings)
    check = TokenCheck(provider, settings)
    seal = FlowSeal(platform.secrets.ensure(COOKIE_SECRET))
    client = ProviderClient(fetcher, settings)
    return Sso(
        SignIn(platform, settings, provider, client, check, seal),
        SignOut(platform, settings, provider, check),
        BrowserAnswers(platform.settings.client_url, insecure=settings.allow_insecure),
    )


def sso_of(ctx: Context) -> Sso:
    """Single sign-on of this platform. Raises NotOffered."""
    sso = ctx.resource(SSO)
    if sso is None:
        raise NotOffered()
    return sso
