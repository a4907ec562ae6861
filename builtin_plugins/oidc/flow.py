"""One sign-in in progress: state, nonce and PKCE verifier."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Final

LIFETIME: Final = 300


@dataclass(frozen=True)
class Flow:
    """The secrets of one sign-in. Each is 24 random bytes or more, as URL-safe text."""

    state: str
    nonce: str
    verifier: str

    @classmethod
    def begin(cls) -> Flow:
        """New random secrets."""
        return cls(secrets.token_urlsafe(24), secrets.token_urlsafe(24), secrets.token_urlsafe(48))
