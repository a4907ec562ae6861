"""The service's health report (wire-facts 2.1)."""

from __future__ import annotations

from collections.abc import Sequence

from kernel.sdk import HealthCheck, Platform, Unhealthy
from kernel.sdk.telemetry import NotChecked

from .building.engines import ENGINES
from .building.grammar import GrammarEngine
from .settings import GraphSettings
from .walk.following import WALKS

_READY = "initialized"


def checks() -> Sequence[HealthCheck]:
    """Without an engine, no graph can be built, but existing ones still answer."""
    return [
        HealthCheck("entity_extractor", _extractor, service="graph-rag"),
        HealthCheck("graph_constructor", _extractor, service="graph-rag"),
        HealthCheck("graph_retriever", _retriever, service="graph-rag"),
        HealthCheck("spacy_model", _pipeline, service="graph-rag"),
    ]


async def _extractor(platform: Platform) -> None:
    problem = platform.resource(ENGINES).problem()
    if problem is not None:
        raise Unhealthy(f"not_initialized: {problem}")
    raise NotChecked(_READY)


async def _retriever(platform: Platform) -> None:
    platform.resource(WALKS)
    raise NotChecked(_READY)


async def _pipeline(platform: Platform) -> None:
    name = platform.settings_of(GraphSettings).spacy_model
    raise NotChecked(name if GrammarEngine(name).missing() is None else f"{name} (not installed)")
