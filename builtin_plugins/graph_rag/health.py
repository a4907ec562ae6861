"""What the service tells of itself (wire-facts 2.1)."""

from __future__ import annotations

from collections.abc import Sequence

from kernel.sdk import HealthCheck, Platform, Unhealthy

from .building.engines import ENGINES


def checks() -> Sequence[HealthCheck]:
    """Without an engine nothing new is built; what is there still answers."""
    return [HealthCheck("entity_extractor", _extractor, service="graph-rag")]


async def _extractor(platform: Platform) -> None:
    problem = platform.resource(ENGINES).problem()
    if problem is not None:
        raise Unhealthy(problem)
