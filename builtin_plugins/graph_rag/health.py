"""What the service tells of itself (wire-facts 2.1)."""

from __future__ import annotations

from collections.abc import Sequence

from kernel.sdk import HealthCheck, NotConfigured, Platform, Unavailable, Unhealthy

from .building.engines import ENGINES
from .rdf.endpoint import ENDPOINT


def checks() -> Sequence[HealthCheck]:
    """Without an engine nothing new is built; what is there still answers."""
    return [
        HealthCheck("entity_extractor", _extractor, service="graph-rag"),
        HealthCheck("sparql_server", _server, service="graph-rag"),
    ]


async def _server(platform: Platform) -> None:
    endpoint = platform.resource(ENDPOINT)
    if endpoint is None:
        raise NotConfigured()
    try:
        await endpoint.check()
    except Unavailable as error:
        raise Unhealthy(str(error.detail)) from None


async def _extractor(platform: Platform) -> None:
    problem = platform.resource(ENGINES).problem()
    if problem is not None:
        raise Unhealthy(problem)
