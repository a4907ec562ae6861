"""Health checks and the shape of `/health` (spec section 1 rule 2, wire-facts 2.1)."""

from __future__ import annotations

import asyncio
import logging
import textwrap
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from kernel.errors import ANY_ERROR, Unhealthy

if TYPE_CHECKING:
    from kernel.platform import Platform

log = logging.getLogger("platform.health")

_TIMEOUT = 4.0
_TEXT_LIMIT = 200


class NotChecked(Exception):
    """Raised by a check that has nothing to check; the text is shown, and the status stays healthy."""


class NotConfigured(NotChecked):
    """Raised by the health check of something optional that the operator has not set up."""

    def __init__(self) -> None:
        super().__init__("not configured")


class NotInstalled(Unhealthy):
    """Raised by a service's check when it lacks an optional program: the service is down, nothing else is."""

    def __init__(self, remedy: str) -> None:
        super().__init__(f"not installed: {remedy}")


@dataclass(frozen=True)
class HealthCheck:
    """`run(platform)` returns if everything is fine and raises `Unhealthy` (or any error) if not.

    `NotConfigured` means that there is nothing to check, which is not a failure. If a critical check fails,
    the service is unhealthy (503); if an optional one fails, it is degraded (200). With `service`, the check
    appears only in that service's own `/health`; the gateway shows all checks of its process.
    """

    name: str
    run: Callable[[Platform], Awaitable[None]]
    critical: bool = False
    service: str | None = None


class Health(BaseModel):
    """Body of `GET /health`."""

    model_config = ConfigDict(extra="allow")

    service: str
    status: Literal["healthy", "degraded", "unhealthy"]
    timestamp: str
    version: str
    environment: str
    checks: dict[str, str]

    @property
    def http_status(self) -> int:
        """503 if unhealthy, otherwise 200."""
        return 503 if self.status == "unhealthy" else 200


async def run_checks(
    platform: Platform,
    service: str,
    version: str,
    checks: Sequence[HealthCheck],
    extra: dict[str, Any],
    *,
    by_itself: bool = True,
) -> Health:
    """Run all checks concurrently, each within 4 s, and summarize them. `by_itself`: see `run_check`."""
    results = await asyncio.gather(*(run_check(platform, check, by_itself=by_itself) for check in checks))
    failed = [check for check, text in zip(checks, results, strict=True) if is_failure(text)]
    status: Literal["healthy", "degraded", "unhealthy"] = "degraded" if failed else "healthy"
    if any(check.critical for check in failed):
        status = "unhealthy"
    return Health(
        service=service,
        status=status,
        timestamp=datetime.now(UTC).isoformat(),
        version=version,
        environment=platform.settings.environment,
        checks={check.name: text for check, text in zip(checks, results, strict=True)},
        **extra,
    )


async def run_check(platform: Platform, check: HealthCheck, *, by_itself: bool = True) -> str:
    """Return ``healthy``, ``unhealthy: …`` with a public text, or why nothing was checked; within 4 s.

    What is not installed is a failure only of the service `by_itself`, not of the platform.
    """
    try:
        async with asyncio.timeout(_TIMEOUT):
            await check.run(platform)
    except NotChecked as error:
        return shortened(str(error))
    except NotInstalled as error:
        return shortened(f"unhealthy: {error}" if by_itself else str(error))
    except Unhealthy as error:
        return shortened(f"unhealthy: {error}")
    except TimeoutError:
        return "unhealthy: Timeout: no answer within 4 s"
    except ANY_ERROR as error:  # boundary: driver texts may contain secrets, which the log masks
        kind = type(error).__name__
        log.warning("the health check '%s' failed: %s: %s", check.name, kind, error)
        return f"unhealthy: {kind}"
    return "healthy"


def shortened(text: str, limit: int = _TEXT_LIMIT) -> str:
    """At most `limit` characters, cut between words, as half a command might be taken for a whole one."""
    return textwrap.shorten(text, limit, placeholder=" …", break_on_hyphens=False)


def is_failure(text: str) -> bool:
    """Whether the result of a check means that something is wrong."""
    return text.startswith("unhealthy")
