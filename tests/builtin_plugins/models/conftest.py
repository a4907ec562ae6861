"""``runtime_for(server, **limits)``: a client of one of the two protocols; tests that use it run for both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from builtin_plugins.models.runtimes import ModelRuntime, OllamaRuntime, OpenAIRuntime, RuntimeLimits
from kernel.libs.outgoing.client import Outgoing, OutgoingClient
from kernel.observe.metrics import Metrics
from kernel.observe.tracing import Tracing
from kernel.testing import Running, Start

LIMITS = RuntimeLimits(connect_s=2.0, idle_s=5.0, total_s=10.0, health_s=2.0)
RuntimeFor = Callable[..., ModelRuntime]


@pytest.fixture
def start_anywhere(start_platform: Start, database_url: str | None) -> Start:
    """`start_platform` on SQLite, then on PostgreSQL."""

    async def start(*plugins: Any, env: Mapping[str, str | None] | None = None, **more: Any) -> Running:
        return await start_platform(*plugins, env={"DATABASE_URL": database_url, **(env or {})}, **more)

    return start


@pytest.fixture
async def client() -> AsyncIterator[OutgoingClient]:
    """A client that may call this machine."""
    async with Outgoing(["127.0.0.0/8"], Metrics(), Tracing()).client("test") as opened:
        yield opened


@pytest.fixture(params=["ollama", "openai"])
def runtime_for(request: pytest.FixtureRequest, client: OutgoingClient) -> RuntimeFor:
    """Makes a runtime for a URL, with some limits replaced."""
    kind = OllamaRuntime if request.param == "ollama" else OpenAIRuntime

    def make(url: str, **limits: Any) -> ModelRuntime:
        return kind(client, url, limits=replace(LIMITS, **limits))

    return make
