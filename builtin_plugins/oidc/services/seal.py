"""A sign-in in progress is stored in the browser that began it, sealed.

The server stores nothing until the browser returns: a cookie that only this platform can read binds state,
nonce and verifier together, so that none can be replaced by another sign-in's.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from typing import Final

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwe import JWERegistry
from joserfc.jwk import OctKey

from builtin_plugins.oidc.flow import LIFETIME, Flow

_HEADER: Final = {"alg": "dir", "enc": "A256GCM"}
_FIELDS: Final = ("state", "nonce", "verifier")


class FlowSeal:
    """Seals a flow into the text of a cookie, and opens it within five minutes."""

    def __init__(self, secret: str) -> None:
        self._key = OctKey.import_key(hashlib.sha256(secret.encode()).digest())
        self._registry = JWERegistry(algorithms=[_HEADER["alg"], _HEADER["enc"]])

    def seal(self, flow: Flow) -> str:
        """The cookie of `flow`."""
        claims = {**{name: getattr(flow, name) for name in _FIELDS}, "exp": int(time.time()) + LIFETIME}
        return jwt.encode(dict(_HEADER), claims, self._key, registry=self._registry)

    def open(self, cookie: str, state: str) -> Flow | None:
        """The flow of a cookie, if it is fresh and belongs to this state."""
        try:
            claims = jwt.decode(cookie, self._key, registry=self._registry).claims
            flow, expires = Flow(*(str(claims[name]) for name in _FIELDS)), float(claims["exp"])
        except (JoseError, ValueError, TypeError, KeyError):
            return None
        same = hmac.compare_digest(flow.state.encode(), state.encode(errors="replace"))
        return flow if same and expires > time.time() else None
