"""This platform as a client of the provider: authorization code with PKCE, through Authlib."""

from __future__ import annotations

import logging
from typing import Any, Final
from urllib.parse import quote_plus

from aiohttp import encode_basic_auth
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from builtin_plugins.oidc.errors import BadIdToken, ProviderFault
from builtin_plugins.oidc.flow import Flow
from builtin_plugins.oidc.services.fetching import Fetcher
from builtin_plugins.oidc.services.provider import ProviderMetadata
from builtin_plugins.oidc.settings import OidcSettings

log = logging.getLogger("platform.oidc")

_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}
_LONGEST: Final = 32_768


class ProviderClient:
    """The calls of the code flow. Raises ProviderFault."""

    def __init__(self, fetcher: Fetcher, settings: OidcSettings) -> None:
        self._fetcher = fetcher
        self._settings = settings

    def authorization_url(self, metadata: ProviderMetadata, flow: Flow) -> str:
        """The provider's address for the browser."""
        url: str = prepare_grant_uri(
            metadata.authorization_endpoint,
            client_id=self._settings.client_id,
            response_type="code",
            redirect_uri=self._settings.redirect_uri,
            scope=self._settings.scope,
            state=flow.state,
            nonce=flow.nonce,
            code_challenge=create_s256_code_challenge(flow.verifier),
            code_challenge_method="S256",
        )
        return url

    async def exchange(self, metadata: ProviderMetadata, code: str, verifier: str) -> tuple[str, str]:
        """The access token and the ID token for a code."""
        body = prepare_token_request(
            "authorization_code", "", self._settings.redirect_uri, code=code, code_verifier=verifier
        )
        url, headers, body = self._auth(metadata).prepare("POST", metadata.token_endpoint, dict(_FORM), body)
        answer = await self._fetcher.post(url, body, headers)
        access, identity = answer.get("access_token"), answer.get("id_token")
        if not (isinstance(access, str) and access and isinstance(identity, str) and identity):
            raise ProviderFault("The identity provider sent no access token or no ID token")
        if len(access) > _LONGEST or not access.isascii() or not access.isprintable():
            raise ProviderFault("The identity provider sent an access token that can't be used")
        return access, identity

    async def userinfo(
        self, metadata: ProviderMetadata, access_token: str, subject: str
    ) -> dict[str, Any] | None:
        """The provider's data on `subject`; None if it can't be reached. BadIdToken for another subject's."""
        if metadata.userinfo_endpoint is None:
            return {}
        headers = {"Authorization": f"Bearer {access_token}"}
        try:
            claims = await self._fetcher.get(metadata.userinfo_endpoint, headers)
        except ProviderFault:
            log.warning("userinfo failed: name, address and groups are taken from the ID token alone")
            return None
        if claims.get("sub") != subject:
            log.warning("userinfo and the ID token have different subjects")
            raise BadIdToken("The identity provider's userinfo is about a different user")
        return claims

    def _auth(self, metadata: ProviderMetadata) -> ClientAuth:
        """HTTP Basic if the provider accepts it, else the secret in the form; nothing without a secret."""
        settings = self._settings
        if settings.client_secret is None:
            return ClientAuth(settings.client_id, None, "none")
        method = _basic if metadata.takes_basic else "client_secret_post"
        return ClientAuth(settings.client_id, settings.client_secret.get_secret_value(), method)


def _basic(
    client: ClientAuth, _method: str, uri: str, headers: dict[str, str], body: str
) -> tuple[str, dict[str, str], str]:
    """Basic with both halves form-encoded first (RFC 6749 section 2.3.1), which Authlib leaves out."""
    login, secret = quote_plus(client.client_id), quote_plus(client.client_secret)
    return uri, {**headers, "Authorization": encode_basic_auth(login, secret)}, body
