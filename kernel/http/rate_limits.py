"""Limits on calls in time windows: the gateway's general limit per caller, and those that routes declare.

Counts are kept in the cache store or, if that is unavailable, in this process alone.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import hdrs

from kernel.auth.identity import SERVICE_TOKEN
from kernel.errors import TooManyRequests, Unauthorized
from kernel.http.context import Context
from kernel.http.routes import Rate, Route
from kernel.plugins.offers import OFFERS
from kernel.plugins.resource_keys import ResourceKey
from kernel.settings.loading import KernelSettings
from kernel.stores.cache import MemoryCache
from kernel.stores.protocols import Cache, CacheUnavailable

log = logging.getLogger("platform.http")

WINDOW = 60
BURST_WINDOW = 600


class RateLimits:
    """The counters of one platform. Unless `enabled`, nothing is counted and nothing refused."""

    def __init__(self, cache: Cache, *, enabled: bool) -> None:
        self._cache = cache
        self._enabled = enabled
        self._own = MemoryCache()
        self._warned = 0.0

    async def count(
        self,
        key: str,
        limit: int,
        *,
        burst: int = 0,
        fails_open: bool = False,
        error: type[TooManyRequests] = TooManyRequests,
    ) -> None:
        """Count a call of `key` in this minute. Raises `error` above `limit`.

        With a `burst`, that many more are allowed in ten minutes. If the cache store is unavailable, this
        process counts on its own, unless the limit `fails_open`.
        """
        if not self._enabled:
            return
        count, left = await self._increment(key, WINDOW, fails_open)
        if count > limit and (not burst or await self.exceeds(f"{key}:burst", burst, BURST_WINDOW)):
            raise error(
                f"Rate limit exceeded: {limit} requests per minute; try again in {left} s",
                headers={"Retry-After": str(left)},
            )

    async def exceeds(self, key: str, limit: int, window: int) -> bool:
        """Count a call of `key` in `window` seconds; returns whether that exceeds `limit`."""
        if not self._enabled:
            return False
        return (await self._increment(key, window))[0] > limit

    async def current_count(self, key: str, window: int = WINDOW) -> int:
        """How often `count` or `exceeds` has counted `key` in the current window."""
        try:
            return await self._cache.count(key, window)
        except CacheUnavailable as error:
            self._warn(error)
            return await self._own.count(key, window)

    async def _increment(self, key: str, window: int, fails_open: bool = False) -> tuple[int, int]:
        try:
            return await self._cache.increment(key, window)
        except CacheUnavailable as error:
            self._warn(error)
            return (0, 0) if fails_open else await self._own.increment(key, window)

    def _warn(self, error: CacheUnavailable) -> None:
        """Log once a minute that limits are off; a line per request would flood the log."""
        if time.monotonic() - self._warned > WINDOW or not self._warned:
            self._warned = time.monotonic()
            log.warning("the cache store is unavailable (%s): requests are not rate-limited", error)


RATE_LIMITS: ResourceKey[RateLimits] = ResourceKey("rate_limits")


_LONGEST_PLACE = 200  # characters of a path in the cache's keys: client input is bounded
_EXEMPT = frozenset({"/health", "/metrics", "/docs", "/redoc", "/openapi.json", "/livez", "/readyz"})
_EXEMPT_PREFIXES = ("/static/", "/favicon")


class AddressLimited(TooManyRequests):
    code = "rate_limit_per_minute"


class AccountLimited(TooManyRequests):
    code = "rate_limit_account_per_minute"


class RequestLimits:
    """Counts requests per sender: a signed-in account, otherwise a network address."""

    def __init__(self, counters: RateLimits, settings: KernelSettings) -> None:
        self._counters = counters
        self._per_address = settings.rate_limit_per_minute
        self._per_account = settings.rate_limit_account_per_minute
        self._counted_later: tuple[str, ...] | None = None
        self._under_way: Counter[str] = Counter()

    async def check_general(self, ctx: Context) -> None:
        """The gateway's general limit (decisions.md, Rate limits).

        Fails open if the cache store does not answer. Raises AddressLimited or AccountLimited.
        """
        path = ctx.request.path
        if path in _EXEMPT or path.startswith(_EXEMPT_PREFIXES) or self._is_counted_later(ctx):
            return
        subject = ctx.principal.subject
        if subject:
            key, limit = f"ratelimit:account:{subject}", self._per_account
        else:
            key, limit = f"ratelimit:{ctx.network}", self._per_address
        error = AccountLimited if subject else AddressLimited
        await self._counters.count(key, limit, fails_open=True, error=error)

    @asynccontextmanager
    async def attempt(self, ctx: Context) -> AsyncIterator[None]:
        """Compare a credential within this: it counts for its network unless it is right.

        It counts while it is being compared, so that many guesses at once don't pass the limit together.
        Raises AddressLimited before it is compared, right or wrong.
        """
        if not any(name in ctx.request.headers for name in (hdrs.AUTHORIZATION, SERVICE_TOKEN)):
            yield
            return
        network = ctx.network
        key = f"credentials:{network}"
        under_way = self._under_way[network]
        if under_way + await self._counters.current_count(key) >= self._per_address:
            raise AddressLimited(
                "Too many wrong credentials came from this address; try again in a minute",
                headers={"Retry-After": str(WINDOW)},
            )
        self._under_way[network] += 1
        try:
            yield
        except Unauthorized:
            await self._counters.exceeds(key, self._per_address, WINDOW)
            raise
        finally:
            self._under_way[network] -= 1
            if not self._under_way[network]:
                del self._under_way[network]

    def _is_counted_later(self, ctx: Context) -> bool:
        """Whether the service counts it (`Mount.counts`). With a token it counts like any other request."""
        if hdrs.AUTHORIZATION in ctx.request.headers:
            return False
        if self._counted_later is None:
            services = ctx.platform.resource(OFFERS).all_services.values()
            mounts = (mount for service in services for mount in service.prefixes)
            self._counted_later = tuple(mount.prefix + "/" for mount in mounts if mount.counts)
        return ctx.request.path.startswith(self._counted_later)

    async def check_route(self, ctx: Context, route: Route) -> None:
        """The limit that the route declares, if it does. Raises TooManyRequests."""
        if route.rate is not None:
            await self._count(ctx, route, route.rate)

    async def _count(self, ctx: Context, route: Route, rate: Rate) -> None:
        settings = ctx.platform.settings if rate.settings is None else ctx.settings_of(rate.settings)
        limit = rate.limit(settings) if callable(rate.limit) else rate.limit
        subject = None if rate.per == "ip" else ctx.principal.subject
        caller = subject or ctx.network
        place = (
            ctx.request.path[:_LONGEST_PLACE] if rate.scope == "path" else f"{route.method} {ctx.endpoint}"
        )
        await self._counters.count(f"ratelimit:{place}:{caller}", limit)


REQUEST_LIMITS: ResourceKey[RequestLimits] = ResourceKey("request_limits")
