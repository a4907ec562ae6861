"""Limits deliveries: many with a valid proof, few of all others, counted separately.

A sender such as GitHub doesn't repeat a refused delivery, so nobody may use up its allowance, not even a
stranger behind the same address. Hence a signed delivery is never refused before verification. The price: an
address that has used up the strangers' allowance can still make the platform read bodies. Those are read a
few at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kernel.sdk import RATE_LIMITS, Context

from .settings import WebhookSettings

_SUSPECTS_AT_ONCE = 4


class Admission:
    """Counts the deliveries of one process, in counters shared by all processes."""

    def __init__(self) -> None:
        self._narrow = asyncio.Semaphore(_SUSPECTS_AT_ONCE)

    async def count_stranger(self, ctx: Context, place: str) -> None:
        """Count a delivery without a valid proof. Raises TooManyRequests.

        `place`: the webhook's path, so that one sender without a secret does not use up another's allowance.
        """
        limit = ctx.settings_of(WebhookSettings).webhook_rate_per_minute
        await ctx.resource(RATE_LIMITS).count(_key(ctx, place), limit)

    async def count_proven(self, ctx: Context, plugin: str) -> None:
        """Count a delivery with a valid proof. Raises TooManyRequests."""
        settings = ctx.settings_of(WebhookSettings)
        limit, burst = settings.webhook_proven_per_minute, settings.webhook_proven_burst
        await ctx.resource(RATE_LIMITS).count(f"ratelimit:webhook:proven:{plugin}", limit, burst=burst)

    @asynccontextmanager
    async def reading(self, ctx: Context, place: str) -> AsyncIterator[None]:
        """Read and verify a body inside; addresses that sent too much without proof take turns."""
        refused = await ctx.resource(RATE_LIMITS).current_count(_key(ctx, place))
        if refused < ctx.settings_of(WebhookSettings).webhook_rate_per_minute:
            yield
            return
        async with self._narrow:
            yield


def _key(ctx: Context, place: str) -> str:
    return f"ratelimit:webhook:unproven:{place}:{ctx.network}"
