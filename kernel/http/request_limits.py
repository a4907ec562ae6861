"""Request limits per caller: the gateway's general limit, and those that routes declare."""

from __future__ import annotations

from aiohttp import hdrs

from kernel.errors import TooManyRequests
from kernel.http.context import Context
from kernel.http.routes import Rate, Route
from kernel.rate_limits import RateLimits
from kernel.resource_keys import ResourceKey
from kernel.settings import KernelSettings

_LONGEST_PLACE = 200  # characters of a path in the cache's keys: client input is bounded
_EXEMPT = frozenset({"/health", "/metrics", "/docs", "/redoc", "/openapi.json", "/livez", "/readyz"})
_EXEMPT_PREFIXES = ("/static/", "/favicon")
# Webhook deliveries are counted by the service that receives them, once verified: a sender's burst must not
# be lost.
_WEBHOOKS = "/webhook/"


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

    async def check_general(self, ctx: Context) -> None:
        """The gateway's general limit (decisions.md, Rate limits).

        Fails open if the cache store does not answer. Raises AddressLimited or AccountLimited.
        """
        path = ctx.request.path
        if path in _EXEMPT or path.startswith(_EXEMPT_PREFIXES) or _is_counted_later(ctx):
            return
        subject = ctx.principal.subject
        if subject:
            await self._count_general(f"ratelimit:account:{subject}", self._per_account, AccountLimited)
        else:
            await self._count_general(f"ratelimit:{ctx.network}", self._per_address, AddressLimited)

    async def _count_general(self, key: str, limit: int, error: type[TooManyRequests]) -> None:
        await self._counters.count(key, limit, fails_open=True, error=error)

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


def _is_counted_later(ctx: Context) -> bool:
    """Whether it is a webhook delivery; one with a token counts like any other request."""
    return ctx.request.path.startswith(_WEBHOOKS) and hdrs.AUTHORIZATION not in ctx.request.headers


REQUEST_LIMITS: ResourceKey[RequestLimits] = ResourceKey("request_limits")
