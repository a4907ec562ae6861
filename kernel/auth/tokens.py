"""Access tokens: HS256 JWTs (RFC 7519) with the claims of decisions.md; verified ones are cached."""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import jwt

from kernel.auth.models import Account
from kernel.auth.secrets import SecretStore
from kernel.errors import Unauthorized, UnknownCredential
from kernel.plugins.resource_keys import ResourceKey
from kernel.settings.loading import KernelSettings

ALGORITHM = "HS256"
_MAX_TOKEN = 8192
_CACHE_SIZE = 20_000
_REQUIRED = ["exp", "iat", "sub"]
_SET_BACK = 3 * 3600
"""Seconds that a token may be ahead of the clock, which may have been set back. Its expiry still counts."""


_LARGEST_ID = 2**31 - 1


def account_id(claims: Mapping[str, Any]) -> int | None:
    """The account that the verified claims name; None when the subject can't be one."""
    subject = claims.get("sub")
    if not (isinstance(subject, str) and subject.isascii() and subject.isdecimal() and len(subject) <= 10):
        return None
    number = int(subject)
    return number if number <= _LARGEST_ID else None


class Tokens:
    """Creates and verifies tokens. The algorithm is fixed and never taken from a token (RFC 8725 section
    3.1).
    """

    def __init__(self, settings: KernelSettings, secret_store: SecretStore) -> None:
        """`secret_store` holds this home's secret, used if the settings have none."""
        self._settings = settings
        self._secret_store = secret_store
        self._lifetime = settings.jwt_expiration_minutes * 60
        self._verified: dict[bytes, tuple[dict[str, Any], float]] = {}

    def prepare(self) -> None:
        """Load or create the secret now rather than for the first token."""
        _ = self._secrets

    @cached_property
    def _secrets(self) -> tuple[str, ...]:
        """The accepted secrets; the first one signs."""
        current, previous = self._settings.jwt_secret, self._settings.jwt_previous_secret
        secret = current.get_secret_value() if current else self._secret_store.ensure("jwt-secret")
        return (secret, previous.get_secret_value()) if previous else (secret,)

    @property
    def lifetime(self) -> int:
        """Seconds for which an access token is valid."""
        return self._lifetime

    def mint(self, account: Account, claims: dict[str, Any], *, auth_time: int | None = None) -> str:
        """A fresh access token for `account`. `auth_time` is the original sign-in (default: now)."""
        now = int(time.time())
        payload = {
            **claims,
            "sub": str(account.id),
            "username": account.username,
            "email": account.email,
            "role": account.role,
            "platform_admin": account.platform_admin,
            "epoch": account.epoch,
            "iat": now,
            "exp": now + self._lifetime,
            "auth_time": auth_time or now,
            "jti": uuid.uuid4().hex,
        }
        payload.setdefault("teams", [])
        return jwt.encode(payload, self._secrets[0], ALGORITHM)

    def mint_service(self, name: str, days: int) -> str:
        """A service token (decisions.md); it can't be refreshed."""
        now = int(time.time())
        payload = {"sub": f"service:{name}", "role": "service", "username": name, "jti": uuid.uuid4().hex}
        return jwt.encode({**payload, "iat": now, "exp": now + days * 86400}, self._secrets[0], ALGORITHM)

    def verify(self, token: str) -> dict[str, Any]:
        """The claims of a valid token. Raises Unauthorized if it has expired, UnknownCredential otherwise."""
        digest = hashlib.blake2b(token.encode(errors="replace"), digest_size=16).digest()
        entry = self._verified.get(digest)
        if entry is not None and entry[1] > time.time():
            return entry[0]
        claims = self._decode(token, verify_exp=True)
        self._remember(digest, claims)
        return claims

    def verify_for_refresh(self, token: str) -> dict[str, Any]:
        """The claims of a token that may have expired; the caller checks the grace period."""
        return self._decode(token, verify_exp=False)

    def _remember(self, digest: bytes, claims: dict[str, Any]) -> None:
        if len(self._verified) >= _CACHE_SIZE:
            now = time.time()
            self._verified = {k: v for k, v in self._verified.items() if v[1] > now}
            if len(self._verified) >= _CACHE_SIZE:
                self._verified.clear()
        self._verified[digest] = (claims, float(claims["exp"]))

    def _decode(self, token: str, *, verify_exp: bool) -> dict[str, Any]:
        if len(token) > _MAX_TOKEN:
            raise UnknownCredential("Invalid token: too long")
        for secret in self._secrets:
            try:
                return self._decode_with(secret, token, verify_exp)
            except jwt.InvalidSignatureError:
                continue
            except jwt.ExpiredSignatureError:
                raise Unauthorized("The token has expired; refresh it or sign in again") from None
            except (jwt.InvalidTokenError, ValueError, RecursionError, OverflowError, TypeError):
                raise UnknownCredential("Invalid token") from None
        raise UnknownCredential("Invalid token")

    def _decode_with(self, secret: str, token: str, verify_exp: bool) -> dict[str, Any]:
        options: Any = {
            "require": _REQUIRED,
            "verify_exp": verify_exp,
            "verify_aud": False,
            "verify_iat": False,
        }
        claims: dict[str, Any] = jwt.decode(token, secret, algorithms=[ALGORITHM], options=options)
        _check_shape(claims)
        if claims["iat"] > time.time() + _SET_BACK:
            raise jwt.ImmatureSignatureError("iat is in the future")
        return claims


TOKENS: ResourceKey[Tokens] = ResourceKey("tokens")


def _check_shape(claims: dict[str, Any]) -> None:
    """Check the types of the claims that requests use: ids go into queries unchecked."""
    for name in ("exp", "iat", "auth_time"):
        if not _is_whole(claims.get(name, 0), 2**53):
            raise jwt.InvalidTokenError(f"{name} must be a whole number")
    if not isinstance(claims.get("epoch", 0), int) or isinstance(claims.get("epoch"), bool):
        raise jwt.InvalidTokenError("epoch must be a whole number")
    teams, orgs = claims.get("teams") or [], claims.get("orgs") or []
    if not isinstance(teams, list) or not all(_is_whole(team, _LARGEST_ID) for team in teams):
        raise jwt.InvalidTokenError("teams must be a list of ids")
    if not isinstance(orgs, list) or not all(_is_organization(org) for org in orgs):
        raise jwt.InvalidTokenError("orgs must be a list of {id, role}")


def _is_whole(value: Any, largest: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= largest


def _is_organization(value: Any) -> bool:
    return isinstance(value, dict) and _is_whole(value.get("id"), _LARGEST_ID)
