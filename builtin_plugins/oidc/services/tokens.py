"""ID tokens and logout tokens of the provider: the signature is checked first, then the claims."""

from __future__ import annotations

import logging
from typing import Any, Final

from authlib.oauth2.claims import JWTClaims
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from builtin_plugins.oidc.errors import BadIdToken, BadLogoutToken, ProviderFault, UnknownKey
from builtin_plugins.oidc.services.provider import Provider
from builtin_plugins.oidc.settings import OidcSettings

log = logging.getLogger("platform.oidc")

LOGOUT_EVENT: Final = "http://schemas.openid.net/event/backchannel-logout"
_LONGEST: Final = 32_768
_LONGEST_SUBJECT: Final = 255


class Untrusted(Exception):
    """An invalid token; the text tells why and may be shown."""


class TokenCheck:
    """Verifies what the configured provider signed for this client (OpenID Connect Core 3.1.3.7)."""

    def __init__(self, provider: Provider, settings: OidcSettings) -> None:
        self._provider = provider
        self._settings = settings
        allowed = settings.algorithms.split(",")
        self._registry = JWSRegistry(algorithms=allowed, strict_check_header=False)

    async def id_token(self, token: str, *, nonce: str, access_token: str) -> dict[str, Any]:
        """The claims of an ID token for this sign-in. Raises BadIdToken, ProviderFault."""
        try:
            signed = await self._verified(token)
            return self._id_claims(signed, nonce, access_token)
        except Untrusted as error:
            log.warning("an ID token was refused: %s", error)
            raise BadIdToken(f"The identity provider's ID token was refused: {error}") from None

    async def logout_token(self, token: str) -> dict[str, Any]:
        """The claims of a logout token (Back-Channel Logout 1.0 section 2.6). Raises BadLogoutToken."""
        try:
            signed = await self._verified(token)
            return self._logout_claims(signed)
        except Untrusted as error:
            log.warning("a logout token was refused: %s", error)
            raise BadLogoutToken(f"The logout token was refused: {error}") from None
        except ProviderFault as error:
            raise BadLogoutToken(f"The logout token can't be checked: {error.detail}") from None

    async def _verified(self, token: str) -> jwt.Token:
        if len(token) > _LONGEST:
            raise Untrusted("it is too long")
        try:
            return self._decode(token, await self._provider.keys())
        except InvalidKeyIdError:
            pass
        try:
            return self._decode(token, await self._provider.renewed_keys())
        except InvalidKeyIdError:
            log.warning("a token names a key that the identity provider does not publish")
            raise UnknownKey() from None

    def _decode(self, token: str, keys: KeySet) -> jwt.Token:
        try:
            return jwt.decode(token, keys, registry=self._registry)
        except InvalidKeyIdError:
            raise
        except (JoseError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise Untrusted(_reason(error)) from None

    def _id_claims(self, signed: jwt.Token, nonce: str, access_token: str) -> dict[str, Any]:
        if signed.claims.get("sub") in (None, ""):
            raise ProviderFault("The identity provider's token has no subject")
        params = {"client_id": self._settings.client_id, "nonce": nonce, "access_token": access_token}
        claims = CodeIDToken(signed.claims, signed.header, self._expected(), params)
        self._validate(claims)
        if self._settings.require_at_hash and not claims.get("at_hash"):
            raise Untrusted("at_hash is missing")
        return dict(claims)

    def _logout_claims(self, signed: jwt.Token) -> dict[str, Any]:
        if str(signed.header.get("typ", "JWT")).lower() not in ("jwt", "logout+jwt"):
            raise Untrusted("it is a token of another type")
        expected = {**self._expected(), "jti": {"essential": True}}
        claims = JWTClaims(signed.claims, signed.header, expected)
        self._validate(claims)
        events = claims.get("events")
        if not isinstance(events, dict) or not isinstance(events.get(LOGOUT_EVENT), dict):
            raise Untrusted("it has no logout event")
        if "nonce" in claims:
            raise Untrusted("it has a nonce")
        if not any(isinstance(claims.get(name), str) and claims[name] for name in ("sub", "sid")):
            raise Untrusted("it names neither subject nor session")
        return dict(claims)

    def _expected(self) -> dict[str, Any]:
        return {
            "iss": {"essential": True, "value": self._provider.issuer},
            "aud": {"essential": True, "value": self._settings.client_id},
            "exp": {"essential": True},
            "iat": {"essential": True},
        }

    def _validate(self, claims: JWTClaims) -> None:
        try:
            claims.validate(leeway=self._settings.leeway_seconds)
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise Untrusted(_reason(error)) from None
        subject = claims.get("sub", "-")
        if not isinstance(subject, str) or not subject.isprintable() or len(subject) > _LONGEST_SUBJECT:
            raise Untrusted("its subject can't be read")


def _reason(error: Exception) -> str:
    """The library's reason; the words are its own, not the token's."""
    if isinstance(error, JoseError):
        claim = getattr(error, "claim", None)
        return f"{error.error}{f' ({claim})' if claim else ''}"
    return "it can't be read"
