"""Sign-out here and at the provider, and the provider's notices of sign-outs there."""

from __future__ import annotations

import logging
import time
from typing import Any, Final

from authlib.common.urls import add_params_to_uri

from builtin_plugins.accounts.api import end_external_sessions
from builtin_plugins.oidc.errors import BadLogoutToken, ProviderFault
from builtin_plugins.oidc.services.marks import subject_of_session, use_up
from builtin_plugins.oidc.services.provider import Provider
from builtin_plugins.oidc.services.tokens import TokenCheck
from builtin_plugins.oidc.settings import OidcSettings
from kernel.sdk import Account, Platform, Unit, audit
from kernel.sdk.accounts import Origin, revoke_sessions

log = logging.getLogger("platform.oidc")

_LONGEST_MEMORY: Final = 10 * 365 * 86_400.0


class SignOut:
    """Ends sessions."""

    def __init__(
        self, platform: Platform, settings: OidcSettings, provider: Provider, check: TokenCheck
    ) -> None:
        self._platform = platform
        self._settings = settings
        self._provider = provider
        self._check = check

    async def here(self, account_id: int, origin: Origin) -> str | None:
        """End all sessions of an account; returns the provider's sign-out page, if it came from there."""
        issuer = await self._platform.database.write(_end_sessions, account_id, origin)
        return await self._provider_url() if issuer == self._provider.issuer else None

    async def _provider_url(self) -> str | None:
        """RP-Initiated Logout 1.0; None when the provider has no such page or can't be asked."""
        try:
            url = (await self._provider.metadata()).end_session_endpoint
        except ProviderFault:
            return None
        if url is None:
            return None
        params = {
            "client_id": self._settings.client_id,
            "post_logout_redirect_uri": self._settings.post_logout_redirect_uri,
        }
        page_url: str = add_params_to_uri(url, [(key, value) for key, value in params.items() if value])
        return page_url

    async def by_provider(self, token: str, origin: Origin) -> None:
        """End the sessions that a logout token is about. Raises BadLogoutToken.

        A provider session corresponds to all sessions of the account here. A subject without an account is
        already signed out.
        """
        claims = await self._check.logout_token(token)
        if await self._platform.database.write(self._end_by_provider, claims, origin):
            log.info("the identity provider ended the sessions of an account")

    def _end_by_provider(self, unit: Unit, claims: dict[str, Any], origin: Origin) -> bool:
        """End the sessions of a subject; returns whether it has an account here."""
        if not use_up(unit, "jti", claims["jti"], self._left(claims["exp"])):
            raise BadLogoutToken("The logout token was used already")
        subject = claims.get("sub") or subject_of_session(unit, claims["sid"])
        return subject is not None and end_external_sessions(unit, self._provider.issuer, subject, origin)

    def _left(self, expires: float) -> float:
        """For how many seconds a token could be replayed."""
        now = time.time()
        left = max(min(expires, now + _LONGEST_MEMORY) - now, 0)
        return left + self._settings.leeway_seconds + 1


def _end_sessions(unit: Unit, account_id: int, origin: Origin) -> str | None:
    """End all sessions of an account; returns which provider it signs in through."""
    account = unit.session.get_one(Account, account_id)
    revoke_sessions(unit, account_id)
    audit(unit, "account.signed_out", "account", account_id, origin=origin)
    issuer: str | None = account.sso_issuer
    return issuer
