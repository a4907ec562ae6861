"""Visitors' tokens: JWTs (RFC 7519) with their own key, so that no other route accepts them.

A token is bound to the endpoint, the page's origin and the session.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import jwt

from builtin_plugins.published_chat.errors import VisitorTokenInvalid
from builtin_plugins.published_chat.settings import PublishedChatSettings
from kernel.sdk import Platform, ResourceKey

_ALGORITHM = "HS256"
_AUDIENCE = "published_chat"
SECRET = "published-chat"
_LONGEST = 2048
_CLAIMS = ["exp", "iat", "sub", "ep", "org", "start"]


@dataclass(frozen=True, slots=True)
class Visitor:
    """A verified session: its id, and when it began (seconds since the epoch)."""

    session_id: str
    started: int


@dataclass(frozen=True, slots=True)
class Credential:
    """What a token with our signature says. `expires` is in seconds since the epoch."""

    visitor: Visitor
    endpoint_id: str
    origin: str
    expires: int


class VisitorTokens:
    """Creates and verifies visitors' tokens."""

    def __init__(self, settings: PublishedChatSettings, secret: str) -> None:
        self._secret = secret
        self.lifetime = settings.token_minutes * 60
        self._longest_session = settings.session_hours * 3600

    def new(self) -> Visitor:
        """Begin a session."""
        return Visitor(str(uuid.uuid4()), int(time.time()))

    def mint(self, visitor: Visitor, endpoint_id: str, origin: str) -> str:
        """A token for this session, on pages of this origin."""
        now = int(time.time())
        claims = {
            "aud": _AUDIENCE,
            "sub": visitor.session_id,
            "ep": endpoint_id,
            "org": origin.lower(),
            "start": visitor.started,
            "iat": now,
            "exp": now + self.lifetime,
        }
        return jwt.encode(claims, self._secret, _ALGORITHM)

    def read(self, token: str) -> Credential:
        """The contents of a visitor's token, even if it has expired. Raises VisitorTokenInvalid."""
        if len(token) > _LONGEST:
            raise VisitorTokenInvalid()
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._secret,
                algorithms=[_ALGORITHM],
                audience=_AUDIENCE,
                options={"require": _CLAIMS, "verify_exp": False},
            )
        except (jwt.InvalidTokenError, ValueError, RecursionError, TypeError):
            raise VisitorTokenInvalid() from None
        visitor = Visitor(claims["sub"], claims["start"])
        return Credential(visitor, claims["ep"], claims["org"], claims["exp"])

    def verify(self, credential: Credential, endpoint_id: str, origin: str) -> Visitor:
        """The session of a token that is valid now. Raises VisitorTokenInvalid."""
        if time.time() >= credential.expires:
            raise VisitorTokenInvalid()
        return self._bound(credential, endpoint_id, origin)

    def verify_for_renewal(self, credential: Credential, endpoint_id: str, origin: str) -> Visitor:
        """The same for a token that may have expired, while its session lasts. Raises VisitorTokenInvalid."""
        visitor = self._bound(credential, endpoint_id, origin)
        if time.time() > visitor.started + self._longest_session:
            raise VisitorTokenInvalid()
        return visitor

    def _bound(self, credential: Credential, endpoint_id: str, origin: str) -> Visitor:
        if (credential.endpoint_id, credential.origin) != (endpoint_id, origin.lower()):
            raise VisitorTokenInvalid()
        return credential.visitor

    def blind(self, network: str) -> str:
        """A name for a visitor's network that doesn't reveal its address, for counting requests."""
        return blake2b(network.encode(), key=self._secret.encode()[:64], digest_size=16).hexdigest()


VISITOR_TOKENS: ResourceKey[VisitorTokens] = ResourceKey("published_chat.visitor_tokens")


@asynccontextmanager
async def open_visitor_tokens(platform: Platform) -> AsyncIterator[VisitorTokens]:
    """The tokens of this platform; all its processes share the key."""
    settings = platform.settings_of(PublishedChatSettings)
    yield VisitorTokens(settings, platform.secrets.ensure(SECRET))
