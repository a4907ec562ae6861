"""How many deliveries are taken: of what proves itself plenty, of everything else few, counted apart.

A sender such as GitHub does not send again what was refused, so nobody may use up its allowance, not even a
stranger behind the same address. Hence nothing that carries a signature is refused before it is verified.
The price: an address that has used up what strangers are allowed can still make the platform read bodies.
Those are read a few at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kernel.sdk import RATE_LIMITS, Context

from .settings import WebhookSettings

_SUSPECTS_AT_ONCE = 4


class Admission:
    """Counts the deliveries of one process; the counters are those of all processes."""

    def __init__(self) -> None:
        self._narrow = asyncio.Semaphore(_SUSPECTS_AT_ONCE)

    async def count_stranger(self, ctx: Context, place: str) -> None:
        """Count a delivery that proved nothing. Raises TooManyRequests.

        `place`: the webhook's path, so that one sender without a secret does not use up another's allowance.
        """
        limit = ctx.settings_of(WebhookSettings).webhook_rate_per_minute
        await ctx.resource(RATE_LIMITS).count(_key(ctx, place), limit)

    async def count_proven(self, ctx: Context, plugin: str) -> None:
        """Count a delivery that proved itself. Raises TooManyRequests."""
        settings = ctx.settings_of(WebhookSettings)
        limit, burst = settings.webhook_proven_per_minute, settings.webhook_proven_burst
        await ctx.resource(RATE_LIMITS).count(f"ratelimit:webhook:proven:{plugin}", limit, burst=burst)

    @asynccontextmanager
    async def reading(self, ctx: Context, place: str) -> AsyncIterator[None]:
        """Read and verify a body inside; where the address sent too much that proved nothing, in turn."""
        refused = await ctx.resource(RATE_LIMITS).seen(_key(ctx, place))
        if refused < ctx.settings_of(WebhookSettings).webhook_rate_per_minute:
            yield
            return
        async with self._narrow:
            yield


def _key(ctx: Context, place: str) -> str:
    return f"ratelimit:webhook:unproven:{place}:{ctx.network}"
