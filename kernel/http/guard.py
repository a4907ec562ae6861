"""What stands before a handler: who sends it, how often, and whether they may."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aiohttp import hdrs

from kernel.auth.permissions import Decision
from kernel.auth.principals import ANONYMOUS, Principal
from kernel.errors import BadRequest, Forbidden, TooManyRequests, Unauthorized
from kernel.http.addresses import network_of
from kernel.http.context import Context
from kernel.http.routes import Rate, Route
from kernel.stores.cache import CacheUnavailable, MemoryCache

if TYPE_CHECKING:
    from kernel.platform import Platform

log = logging.getLogger("platform.http")

WINDOW = 60
_LONGEST_PLACE = 200  # of a path in the cache's keys: what strangers write is bounded
_EXEMPT = frozenset({"/health", "/metrics", "/docs", "/redoc", "/openapi.json", "/livez", "/readyz"})
_EXEMPT_PREFIXES = ("/static/", "/favicon")


class Guard:
    """Identity, rate limits and access of one platform."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._hooks = platform.hooks
        self._settings = platform.settings
        self._own = MemoryCache()
        self._warned = 0.0

    async def identify(self, ctx: Context, *, judge: bool = True) -> Principal:
        """The verified sender. Raises BadRequest (two headers) or Unauthorized (a bad credential).

        Without `judge` the sender stays anonymous: the handler looks at the credential itself.
        """
        request = ctx.request
        sent = request.headers.getall(hdrs.AUTHORIZATION, ())
        if len(sent) > 1:
            raise BadRequest("Send one Authorization header, not two")
        if not judge:
            return ANONYMOUS
        authorization = sent[0] if sent else None
        if authorization is not None and self._hooks.count("identify_actor") == 1:
            known = self._platform.identity.recall(authorization)
            if known is not None:
                return known
        principal: Principal | None = await self._hooks.first_sound(
            "identify_actor", request=request, authorization=authorization
        )
        if principal is None:
            raise Unauthorized("The Authorization header must be 'Bearer <token>'")
        return principal

    async def limit(self, ctx: Context) -> None:
        """The gateway's general limit (wire-facts 1.4). Fails open when the cache store does not answer."""
        path = ctx.request.path
        if path in _EXEMPT or path.startswith(_EXEMPT_PREFIXES):
            return
        key = f"ratelimit:{network_of(ctx.client_ip)}"
        if ctx.principal.subject:
            key = f"{key}:{ctx.principal.subject}"
        await self.count(key, self._settings.rate_limit_per_minute, fails_open=True)

    async def check(self, ctx: Context, route: Route, params: dict[str, Any]) -> None:
        """The route's access, then its own rate limit. Raises Unauthorized, Forbidden, TooManyRequests."""
        if route.access.kind != "public" or self._hooks.count("decide_access") > 1:
            await self._decide(ctx, route, params)
        if route.rate is not None:
            await self._limit_route(ctx, route, route.rate)

    async def _decide(self, ctx: Context, route: Route, params: dict[str, Any]) -> None:
        decisions = await self._decisions(ctx, route, params)
        if Decision.DENY not in decisions and Decision.ALLOW in decisions:
            return
        if ctx.principal.kind == "anonymous":
            raise Unauthorized()
        raise Forbidden(f"This needs: {route.access.description or route.access}")

    async def _decisions(
        self, ctx: Context, route: Route, params: dict[str, Any]
    ) -> Sequence[Decision | None]:
        """What all say; where only the kernel is asked, without the way through the hooks."""
        if route.access.kind != "platform_admin" and self._hooks.count("decide_access") == 1:
            return (self._platform.identity.decide(ctx.principal, route.access, params),)
        # A judge that fails can't be taken for one that agrees; but what is open to anyone stays open.
        unheard = None if route.access.kind == "public" else Decision.DENY
        return await self._hooks.ask_each(
            "decide_access",
            unheard,
            ctx=ctx,
            principal=ctx.principal,
            access=route.access,
            params=params,
        )

    async def _limit_route(self, ctx: Context, route: Route, rate: Rate) -> None:
        settings = self._settings if rate.settings is None else self._platform.settings_of(rate.settings)
        limit = rate.limit(settings) if callable(rate.limit) else rate.limit
        subject = None if rate.per == "ip" else ctx.principal.subject
        caller = subject or network_of(ctx.client_ip)
        place = (
            ctx.request.path[:_LONGEST_PLACE] if rate.scope == "path" else f"{route.method} {ctx.endpoint}"
        )
        await self.count(f"ratelimit:{place}:{caller}", limit)

    async def count(self, key: str, limit: int, *, fails_open: bool = False) -> None:
        """Count one more call of `key` in this minute. Raises TooManyRequests past `limit`.

        When the cache store does not answer, this process counts alone, unless the limit `fails_open`.
        """
        if not self._settings.rate_limit_enabled:
            return
        count, left = await self._increment(key, WINDOW, fails_open)
        if count > limit:
            raise TooManyRequests(
                f"Rate limit exceeded: {limit} requests per minute; try again in {left} s",
                headers={"Retry-After": str(left)},
            )

    async def exceeds(self, key: str, limit: int, window: int) -> bool:
        """Count one more of `key` in `window` seconds; whether that is past `limit`."""
        if not self._settings.rate_limit_enabled:
            return False
        return (await self._increment(key, window))[0] > limit

    async def seen(self, key: str, window: int) -> bool:
        """Whether `exceeds` has counted `key` in the current window."""
        try:
            return await self._platform.cache.count(key, window) > 0
        except CacheUnavailable as error:
            self._warn(error)
            return await self._own.count(key, window) > 0

    async def _increment(self, key: str, window: int, fails_open: bool = False) -> tuple[int, int]:
        try:
            return await self._platform.cache.increment(key, window)
        except CacheUnavailable as error:
            self._warn(error)
            return (0, 0) if fails_open else await self._own.increment(key, window)

    def _warn(self, error: CacheUnavailable) -> None:
        """Say once a minute that limits are off; a line for each request would drown the log."""
        if time.monotonic() - self._warned > WINDOW or not self._warned:
            self._warned = time.monotonic()
            log.warning("the cache store is unavailable (%s): requests are not rate-limited", error)
