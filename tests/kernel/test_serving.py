"""`platformctl serve` as real processes: services on ports of their own, and on machines of their own."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest

from tests.fakes.processes import Served, served_platform, without_plugins

SECRET = {"JWT_SECRET": "a secret of at least thirty-two bytes, for tests"}
RAG = {**SECRET, **without_plugins("rag", "embeddings", "remote_services")}
OFFERED = {
    "plugin-registry": 8001,
    "marketplace": 8002,
    "orchestrator": 8003,
    "rag-pipeline": 8004,
    "model-management": 8005,
    "tts-stt": 8006,
    "graph-rag": 8008,
    "platform-ops": 8010,
}
PORTS = (8000, *OFFERED.values())


def taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def test_services_on_their_own_ports(tmp_path: Path) -> None:
    """With PLATFORM_DEV_PORTS=1 each service also listens at its root, with health, metrics and documents."""
    if any(taken(port) for port in PORTS):
        pytest.skip("a port from 8000 to 8010 is taken on this machine")
    env = {**SECRET, "PLATFORM_DEV_PORTS": "1"}
    async with served_platform(tmp_path / "home", "--no-worker", env=env) as served:
        headers = await served.sign_up("ana")
        for name, port in OFFERED.items():
            service = Served(served.process, f"http://127.0.0.1:{port}", served.session)
            status, health = await service.get("/health")
            assert (status, health["service"]) == (200, name)
            _, document = await service.get("/openapi.json")
            assert document["openapi"].startswith("3.1")
            for path in ("/docs", "/redoc", "/metrics"):
                async with served.session.get(service.url + path) as answer:
                    assert answer.status == 200, f"{name} {path}"
        _, direct = await Served(served.process, "http://127.0.0.1:8004", served.session).get(
            "/knowledge-bases", headers=headers
        )
        _, through = await served.get("/v1/rag/knowledge-bases", headers=headers)
        assert direct == through
        assert not any(taken(port) for port in PORTS if port not in OFFERED.values())


async def test_a_proxys_clients_are_told_apart(tmp_path: Path) -> None:
    """A process counts the requests of the clients that a configured proxy names, and not the proxy's."""
    limits = {"RATE_LIMIT_ENABLED": "true", "RATE_LIMIT_PER_MINUTE": "3"}
    env = {**RAG, **limits, "TRUSTED_PROXY_CIDRS": "127.0.0.1/32"}
    async with served_platform(tmp_path / "home", "--no-worker", env=env) as served:

        async def asked_by(address: str) -> int:
            return (await served.get("/v1/rag/knowledge-bases", headers={"X-Forwarded-For": address}))[0]

        assert [await asked_by("203.0.113.1") for _ in range(4)] == [401, 401, 401, 429]
        assert await asked_by("203.0.113.2") == 401


async def test_no_other_port_by_default(tmp_path: Path) -> None:
    if any(taken(port) for port in PORTS):
        pytest.skip("a port from 8000 to 8010 is taken on this machine")
    async with served_platform(tmp_path / "home", "--no-worker", env=RAG):
        assert not any(taken(port) for port in PORTS)


async def test_a_service_on_another_machine(tmp_path: Path) -> None:
    """One process serves the RAG service alone, another one is the gateway; clients see one platform."""
    home = tmp_path / "home"
    only = ("--only", "rag-pipeline", "--no-worker")
    async with served_platform(home, *only, env={**RAG, "TRUSTED_PROXY_CIDRS": "127.0.0.1/32"}) as service:
        env = {**RAG, "PLATFORM_SERVICE_URLS": f"rag-pipeline={service.url}"}
        async with served_platform(home, "--no-worker", env=env) as gateway:
            headers = await gateway.sign_up("ana")
            base = gateway.url + "/v1/rag/knowledge-bases"
            async with gateway.session.post(base, json={"name": "Far away"}, headers=headers) as answer:
                assert answer.status in (200, 201), await answer.text()
                made = await answer.json()
            status, found = await gateway.get(f"/v1/rag/knowledge-bases/{made['id']}", headers=headers)
            assert (status, found["name"]) == (200, "Far away")
            assert (await service.get("/knowledge-bases"))[0] == 401
            _, states = await gateway.get("/v1/status")
            entry = next(item for item in states["services"] if item["name"] == "rag-pipeline")
            assert entry["reachable"]
            service.process.signal(signal.SIGTERM)
            assert await service.process.wait(20) == 0
            assert (await gateway.get("/v1/rag/knowledge-bases", headers=headers))[0] == 503
