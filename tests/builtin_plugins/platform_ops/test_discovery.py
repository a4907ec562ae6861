"""Services register, are listed, looked at, and removed (spec 4.8, wire-facts 9.1)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kernel.testing import audited
from tests.builtin_plugins.platform_ops.neighbour import Neighbour, neighbour
from tests.builtin_plugins.platform_ops.ops_support import Ops, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")
_ALLOWED = {
    "PLATFORM_SERVICES_ALLOWED": "127.0.0.0/8, 169.254.0.0/16, *.corp",
    "SERVICE_SYNC_TOKEN": "s" * 32,
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ops(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Ops]:
    async with serving(tmp_path_factory.mktemp("home"), _ALLOWED) as served:
        yield served


@pytest_asyncio.fixture(loop_scope="module")
async def there() -> AsyncIterator[Neighbour]:
    async with neighbour() as fake:
        yield fake


async def test_a_service_registers_moves_and_leaves(ops: Ops) -> None:
    """The record, its page, its move, its end; each change of the address is in the audit log."""
    made = await ops.register("invoices", "a.corp", 9000, metadata={"team": "finance"})
    assert made.status == 200, made.body
    service = made.json()["service"]
    assert service["health_check_url"] == "/health"
    assert service["health_status"] == "unknown"
    assert service["metadata"] == {"team": "finance"}
    page = (await ops.running.anonymous.get("/v1/services?limit=1")).json()
    assert page == {"services": [service], "count": 1, "total": 1, "limit": 1, "offset": 0}
    assert (await ops.running.anonymous.get("/v1/services/invoices")).json() == service
    assert (await ops.running.anonymous.get("/health")).json()["services_registered"] == 1
    moved = await ops.register("invoices", "b.corp", 9001)
    assert (moved.json()["service"]["host"], moved.json()["service"]["port"]) == ("b.corp", 9001)
    assert (await ops.running.anonymous.get("/v1/services")).json()["total"] == 1
    assert (await ops.admin.delete("/v1/services/invoices")).status == 200
    assert (await ops.running.anonymous.get("/v1/services/invoices")).status == 404
    assert (await ops.admin.delete("/v1/services/invoices")).status == 404
    entries = [entry.action for entry in await audited(ops.running, target_id="invoices")]
    assert entries == ["service.registered", "service.registered", "service.removed"]


async def test_only_administrators_and_services_change_the_list(ops: Ops) -> None:
    body = {"service_name": "x", "service_type": "http", "host": "x.corp", "port": 1}
    for actor, status in ((ops.running.anonymous, 401), (ops.user, 403)):
        assert (await actor.post("/v1/services/register", json=body)).status == status
        assert (await actor.get("/v1/services/x/health")).status == status
        assert (await actor.delete("/v1/services/x")).status == status
    token = {"X-Service-Token": "s" * 32}
    made = await ops.running.anonymous.post("/v1/services/register", json=body, headers=token)
    assert made.status == 200, made.body
    assert (await ops.running.anonymous.delete("/v1/services/x", headers=token)).status == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"host": "10.0.0.1"},
        {"host": "169.254.169.254"},
        {"host": "[::ffff:169.254.169.254]"},
        {"host": "a.corp/path"},
        {"host": "a.corp@b"},
        {"host": "xn--a.corp"},
        {"host": "127.0.0.1:9"},
        {"host": "1::2::3"},
        {"port": 0},
        {"port": 70000},
        {"service_name": "../x"},
        {"health_check_url": "http://169.254.169.254/"},
    ],
)
async def test_a_wrong_registration_is_refused(ops: Ops, wrong: dict[str, object]) -> None:
    """An address off the list, a metadata address on it, what is not an address: 422, and nothing is kept."""
    body = {"service_name": "wrong", "service_type": "http", "host": "a.corp", "port": 1, **wrong}
    refused = await ops.admin.post("/v1/services/register", json=body)
    assert refused.status == 422, refused.body
    assert refused.detail[0]["loc"][-1] == next(iter(wrong))
    assert (await ops.admin.get("/v1/services/wrong")).status == 404


async def test_health_is_looked_at_and_remembered(ops: Ops, there: Neighbour) -> None:
    await ops.register("mood", "127.0.0.1", there.port)
    good = await ops.admin.get("/v1/services/mood/health")
    assert good.status == 200, good.body
    assert good.json()["health_data"] == {"mood": "good"}
    assert good.json()["status"] == "healthy"
    shown = (await ops.admin.get("/v1/services/mood")).json()
    assert shown["health_status"] == "healthy"
    assert shown["last_health_check"] is not None
    there.status = 500
    assert (await ops.admin.get("/v1/services/mood/health")).status == 503
    assert (await ops.admin.get("/v1/services/mood")).json()["health_status"] == "unhealthy"
    await ops.register("mood", "127.0.0.1", 1)
    gone = await ops.admin.get("/v1/services/mood/health")
    assert (gone.status, gone.json()["code"]) == (503, "service_unreachable")
    assert "unreachable" in gone.detail
    assert (await ops.admin.get("/v1/services/unknown/health")).status == 404


async def test_a_name_without_an_address_is_unreachable(ops: Ops) -> None:
    """A name may pass at registration, as its address is not known then."""
    assert (await ops.register("sly", "nowhere.invalid", 80)).status == 200
    assert (await ops.admin.get("/v1/services/sly/health")).status == 503
