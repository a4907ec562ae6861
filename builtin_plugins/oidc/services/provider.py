"""The provider's discovery document and keys, fetched when needed and cached for a while."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from joserfc.errors import JoseError
from joserfc.jwk import Key, KeySet, import_key

from builtin_plugins.oidc.errors import ProviderFault
from builtin_plugins.oidc.services.fetching import Fetcher
from builtin_plugins.oidc.settings import OidcSettings
from kernel.sdk import LiveCache

log = logging.getLogger("platform.oidc")

_METADATA: Final = 0
_KEYS: Final = 1
_MOST_KEYS: Final = 50
_PAUSE: Final = 10.0  # seconds between early renewals of the keys, as anybody can name unknown ones


@dataclass(frozen=True)
class ProviderMetadata:
    """What is used of the discovery document."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None
    end_session_endpoint: str | None
    names_itself: bool
    """Whether every authorization response carries `iss` (RFC 9207)."""
    takes_basic: bool
    """Whether the client may authenticate by HTTP Basic, the default of discovery."""


class Provider:
    """Discovery document and keys of the configured issuer. Raises ProviderFault."""

    def __init__(self, fetcher: Fetcher, settings: OidcSettings) -> None:
        self.issuer = settings.issuer or ""
        self._fetcher = fetcher
        self._insecure = settings.allow_insecure
        self._metadata: LiveCache[int, ProviderMetadata] = LiveCache(
            self._read_metadata, settings.cache_seconds
        )
        self._keys: LiveCache[int, KeySet] = LiveCache(self._read_keys, settings.cache_seconds)
        self._renewed = -_PAUSE

    async def metadata(self) -> ProviderMetadata:
        """The discovery document."""
        return await self._metadata.get(_METADATA)

    async def keys(self) -> KeySet:
        """The published keys."""
        return await self._keys.get(_KEYS)

    async def renewed_keys(self) -> KeySet:
        """The keys, fetched again for a token with an unknown key: the provider may have rotated them."""
        now = time.monotonic()
        if now - self._renewed >= _PAUSE:
            self._renewed = now
            self._keys.invalidate(_KEYS)
        return await self.keys()

    async def _read_metadata(self, _key: int) -> ProviderMetadata:
        document = await self._fetcher.get(f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
        if document.get("issuer") != self.issuer:
            log.error("discovery names the issuer %.200r, not %r", document.get("issuer"), self.issuer)
            raise ProviderFault("The identity provider's issuer differs from the one configured here")
        methods = document.get("token_endpoint_auth_methods_supported")
        return ProviderMetadata(
            authorization_endpoint=self._needed(document, "authorization_endpoint"),
            token_endpoint=self._needed(document, "token_endpoint"),
            jwks_uri=self._needed(document, "jwks_uri"),
            userinfo_endpoint=self._endpoint(document, "userinfo_endpoint"),
            end_session_endpoint=self._endpoint(document, "end_session_endpoint"),
            names_itself=document.get("authorization_response_iss_parameter_supported") is True,
            takes_basic=not isinstance(methods, list) or "client_secret_basic" in methods,
        )

    def _needed(self, metadata: dict[str, Any], name: str) -> str:
        value = self._endpoint(metadata, name)
        if value is None:
            log.error("discovery names no usable %s", name)
            raise ProviderFault(f"The identity provider's discovery document has no {name}")
        return value

    def _endpoint(self, metadata: dict[str, Any], name: str) -> str | None:
        value = metadata.get(name)
        parts = urlsplit(value) if isinstance(value, str) else None
        allowed = ("http", "https") if self._insecure else ("https",)
        return value if parts is not None and parts.scheme in allowed and parts.hostname else None

    async def _read_keys(self, _key: int) -> KeySet:
        listed = (await self._fetcher.get((await self.metadata()).jwks_uri)).get("keys")
        if not isinstance(listed, list) or len(listed) > _MOST_KEYS:
            raise ProviderFault("The identity provider's list of keys can't be read")
        return KeySet([key for key in map(_usable, listed) if key is not None])


def _usable(data: Any) -> Key | None:
    """A public key for signatures; None for any other, which a set may well contain (RFC 7517 section 5)."""
    if not isinstance(data, dict) or data.get("kty") not in ("RSA", "EC") or data.get("use", "sig") != "sig":
        return None
    try:
        return import_key(data)
    except (JoseError, ValueError, TypeError, KeyError):
        log.warning("one of the identity provider's keys can't be read (kid %.80r)", data.get("kid"))
        return None
