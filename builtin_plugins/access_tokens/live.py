"""The tokens in use: looked up once, cached until a notice reports a change."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from builtin_plugins.access_tokens import service
from builtin_plugins.access_tokens.schemas import scopes_of
from builtin_plugins.access_tokens.secret_text import digest, is_well_formed
from kernel.sdk import (
    ACCOUNT_STATES,
    LiveCache,
    Platform,
    Principal,
    ResourceKey,
    Tally,
    Unauthorized,
    repeating,
    utc_now,
)
from kernel.sdk.accounts import AccountState, TokenScope
from kernel.sdk.http import OPEN_STREAMS

_EVERY_SECONDS: Final = 60.0


@dataclass(slots=True)
class LiveToken:
    """What a request needs to know of a token; `principal` is its account's, made of its `state`."""

    id: int
    account_id: int
    scopes: frozenset[TokenScope]
    ends: float
    state: AccountState | None = None
    principal: Principal | None = None

    @property
    def credential(self) -> str:
        """The name by which its streams are found."""
        return f"access_token:{self.id}"


class LiveTokens:
    """Authenticates tokens in one process, and tracks when each was last used."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._states = platform.resource(ACCOUNT_STATES)
        self._streams = platform.resource(OPEN_STREAMS)
        seconds = platform.settings.account_cache_seconds
        self._cache: LiveCache[str, LiveToken | None] = LiveCache(self._read, seconds)
        self._used: Tally[int, datetime] = Tally(
            platform.database, "the times when access tokens were last used", service.write_uses, max
        )

    async def principal_of(self, token: str) -> Principal:
        """The account behind a token, as of now. Raises Unauthorized."""
        live = await self._cache.get(digest(token)) if is_well_formed(token) else None
        if live is None:
            raise Unauthorized("The access token is unknown or was revoked")
        if live.ends <= time.monotonic():
            raise Unauthorized("The access token has expired; create a new one")
        state = await self._states.get(live.account_id)
        if state is None or not state.is_active:
            raise Unauthorized("The account is disabled or was deleted")
        return self._use(live, state)

    def recall(self, token: str) -> Principal | None:
        """The same without waiting, if the token is in use; None if `principal_of` must decide."""
        live = self._cache.peek(digest(token))
        if live is None or live.ends <= time.monotonic():
            return None
        state = self._states.peek(live.account_id)
        return self._use(live, state) if state is not None and state.is_active else None

    def _use(self, live: LiveToken, state: AccountState) -> Principal:
        self._used.add(live.id, utc_now())
        if live.principal is None or live.state is not state:
            live.state = state
            live.principal = replace(state.principal, scopes=live.scopes, credential=live.credential)
        return live.principal

    def on_notice(self, key: str) -> None:
        """A token was created or revoked: look it up again, and end the streams of one that was revoked."""
        token_id, token_hash = service.token_in_notice(key)
        self._cache.invalidate(token_hash)
        self._streams.end(f"access_token:{token_id}")

    async def flush(self) -> None:
        """Store when tokens were last used."""
        await self._used.flush()

    async def _read(self, token_hash: str) -> LiveToken | None:
        row = await self._platform.database.read(service.find, token_hash)
        if row is None:
            return None
        token_id, account_id, scopes, ends = row
        return LiveToken(token_id, account_id, frozenset(scopes_of(scopes)), ends)


LIVE_TOKENS: ResourceKey[LiveTokens] = ResourceKey("access_tokens.live")
KEYS = "access-token-keys"
"""The secret from which the tokens of requests with an idempotency key are derived."""


@asynccontextmanager
async def open_live_tokens(platform: Platform) -> AsyncIterator[LiveTokens]:
    """The resource `LIVE_TOKENS`."""
    # Here rather than at the first request: operators copy the secrets to other machines after a start.
    await asyncio.to_thread(platform.secrets.ensure, KEYS)
    live = LiveTokens(platform)
    async with repeating("access-tokens", live.flush, _EVERY_SECONDS):
        with platform.notices.listening(service.TOPIC, live.on_notice):
            yield live
