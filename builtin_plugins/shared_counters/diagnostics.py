"""What `platformctl doctor` says about the cache store."""

from __future__ import annotations

from collections.abc import AsyncIterator

from builtin_plugins.shared_counters.redis_counters import RedisCounters
from kernel.sdk import Diagnostic, Finding, Platform
from kernel.sdk.storage import CacheUnavailable


async def check_redis(platform: Platform) -> AsyncIterator[Finding]:
    """Whether Redis answers, if the settings name one."""
    address = platform.settings.redis_url
    if address is None:
        yield Finding("cache", "ok", "in memory (REDIS_URL is not set)")
        return
    counters = RedisCounters(address.get_secret_value())
    try:
        await counters.ping()
    except CacheUnavailable as error:
        remedy = "Start Redis or correct REDIS_URL. Until then requests are not rate-limited."
        yield Finding("cache", "failed", f"Redis does not answer: {error}", remedy)
    else:
        yield Finding("cache", "ok", "Redis answers")
    finally:
        await counters.close()


DIAGNOSTICS = (Diagnostic("installation", check_redis),)
