"""Access tokens for the JSON key of a service account, or for an OAuth client with a refresh token."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Final

from pydantic import SecretStr
from yarl import URL

from builtin_plugins.source_drive.settings import DriveSettings
from builtin_plugins.sources.api import BearerToken, CredentialRefused
from kernel.sdk import OutgoingClient

_READ: Final = "https://www.googleapis.com/auth/drive.readonly"
_GROUPS: Final = "https://www.googleapis.com/auth/admin.directory.group.member.readonly"
_TOKENS: Final = "https://oauth2.googleapis.com/token"
_NEEDED: Final = {
    "service_account": ("client_email", "private_key"),
    "authorized_user": ("client_id", "client_secret", "refresh_token"),
}
_SECONDS: Final = 3600


def open_token(client: OutgoingClient, settings: DriveSettings, secret: SecretStr | None) -> BearerToken:
    """The token of a credential, not asked for yet. Raises CredentialRefused, which says what it must be."""
    key = _key_of(secret)
    address = _token_address(key)

    def form() -> Mapping[str, str]:
        if key["type"] == "authorized_user":
            names = ("client_id", "client_secret", "refresh_token")
            return {"grant_type": "refresh_token", **{name: str(key[name]) for name in names}}
        assertion = _assertion(key, settings, str(address))
        return {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": assertion}

    return BearerToken(client, "Google", address, form)


def _key_of(secret: SecretStr | None) -> Mapping[str, Any]:
    try:
        key = json.loads(secret.get_secret_value() if secret is not None else "")
    except ValueError:
        key = None
    needed = _NEEDED.get(str(key.get("type"))) if isinstance(key, dict) else None
    if needed is None or not all(key.get(name) for name in needed):
        raise CredentialRefused(
            "The key must be the JSON file of a service account, or that of an authorized user (client_id, "
            "client_secret, refresh_token)"
        )
    fields: Mapping[str, Any] = key
    return fields


def _token_address(key: Mapping[str, Any]) -> URL:
    try:
        address = URL(str(key.get("token_uri") or _TOKENS))
    except ValueError:
        address = URL()
    if address.scheme not in ("http", "https") or not address.host:
        raise CredentialRefused("The token_uri in the key is not a valid server address")
    return address


def _assertion(key: Mapping[str, Any], settings: DriveSettings, audience: str) -> str:
    """RFC 7523, as Google documents it for service accounts."""
    import jwt  # many processes never sign one

    now = int(time.time())
    claims = {
        "iss": key["client_email"],
        "scope": f"{_READ} {_GROUPS}" if settings.directory else _READ,
        "aud": audience,
        "iat": now,
        "exp": now + _SECONDS,
        **({"sub": settings.account} if settings.account else {}),
    }
    headers = {"kid": str(key["private_key_id"])} if key.get("private_key_id") else None
    try:
        return jwt.encode(claims, str(key["private_key"]), "RS256", headers)
    except (ValueError, TypeError, jwt.PyJWTError):
        raise CredentialRefused("The private key of the service account can't be read") from None
