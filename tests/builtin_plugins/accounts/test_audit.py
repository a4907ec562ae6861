"""The audit log: what it answers, to whom, and that nobody alters it (spec 2.7)."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import delete, text, update
from sqlalchemy.exc import DBAPIError

from kernel.auth.models import AuditEntry
from kernel.sdk import Plugin, Principal, Unit, audit, hookimpl
from kernel.testing import Actor, Running, Start
from tests.fakes.audit import audited
from tests.fakes.rows import execute


class TwoOrganizations(Plugin):
    """mara manages organizations 1 and 2, 2 being below 1, and vera 40,000; nobody else manages any."""

    name = "two_organizations"
    version = "1"

    @hookimpl
    async def find_audited_organizations(
        self, principal: Principal, organization_id: int | None
    ) -> Sequence[int]:
        if principal.username == "vera":
            return range(2, 40_002)
        managed = {1, 2} if principal.username == "mara" or principal.platform_admin else set()
        below = {None: {1, 2}, 1: {1, 2}, 2: {2}}.get(organization_id, set())
        return sorted(managed & below)


@pytest.fixture
async def running(start_platform: Start, database_url: str | None) -> Running:
    """A platform with organizations, and five entries in and out of them."""
    running = await start_platform(TwoOrganizations, env={"DATABASE_URL": database_url})

    def fill(unit: Unit) -> None:
        for number, organization in enumerate((1, 2, 3, None, 2)):
            origin = {"actor_id": 70 + number, "ip_address": "203.0.113.7", "user_agent": "curl"}
            audit(
                unit,
                "thing.changed" if number % 2 else "thing.created",
                "thing",
                number,
                before={"size": number},
                after={"size": number + 1},
                origin=origin,
                scope_org_id=organization,
            )
            unit.session.flush()

    await running.platform.database.write(fill)
    return running


async def listed(actor: Actor, **query: Any) -> dict[str, Any]:
    answer = await actor.get("/v1/audit", params={key: str(value) for key, value in query.items()})
    assert answer.status == 200, answer.body
    body: dict[str, Any] = answer.json()
    return body


async def targets(actor: Actor, **query: Any) -> list[str]:
    entries = (await listed(actor, **{"target_type": "thing", **query}))["entries"]
    return [entry["target_id"] for entry in entries]


def register_as(running: Running, agent: bytes) -> int:
    """The status of a registration by a client that sends these very bytes as its name."""
    connection = http.client.HTTPConnection(running.url.removeprefix("http://"))
    body = json.dumps({"username": "odd", "email": "odd@example.org", "password": "correct horse"})
    headers = {"Content-Type": "application/json", "User-Agent": agent.decode("latin-1")}
    with closing(connection):
        connection.request("POST", "/v1/auth/register", body, headers)
        return connection.getresponse().status


class TestReading:
    async def test_platform_admin_sees_all(self, running: Running) -> None:
        """Every entry, newest first, with every field of the specification."""
        ada = await running.user("ada", role="admin")
        body = await listed(ada)
        assert {key: body[key] for key in ("total", "limit", "offset")} == {
            "total": 7,
            "limit": 50,
            "offset": 0,
        }
        assert [entry["id"] for entry in body["entries"]] == [7, 6, 5, 4, 3, 2, 1]
        entry = body["entries"][-1]
        assert entry.pop("created_at").startswith("20")
        assert entry == {
            "id": 1,
            "action": "thing.created",
            "target_type": "thing",
            "actor_id": 70,
            "target_id": "0",
            "before_state": {"size": 0},
            "after_state": {"size": 1},
            "ip_address": "203.0.113.7",
            "user_agent": "curl",
            "scope_org_id": 1,
            "scope_type": "organization",
            **dict.fromkeys(("actor_name", "target_name", "target_within")),
        }

    @pytest.mark.parametrize(
        ("sent", "kept"), [(b"caf\xc3\xa9 \xff", "café \ufffd"), (b"x" * 9000, "x" * 255)]
    )
    async def test_any_user_agent(self, running: Running, sent: bytes, kept: str) -> None:
        """A client may call itself anything, in any encoding and at any length."""
        ada = await running.user("ada", role="admin")
        assert await asyncio.to_thread(register_as, running, sent) == 201
        entry = (await listed(ada, action="account.created", limit=1))["entries"][0]
        assert (entry["after_state"]["username"], entry["user_agent"]) == ("odd", kept)

    async def test_filters(self, running: Running) -> None:
        """Each alone and all together; the total counts what fits."""
        ada = await running.user("ada", role="admin")
        assert await targets(ada, action="thing.changed") == ["3", "1"]
        assert await targets(ada, actor_id=72) == ["2"]
        assert await targets(ada, target_id="4") == ["4"]
        assert await targets(ada, target_type="account", action="thing.changed") == []
        assert await targets(ada, org_id=1) == ["4", "1", "0"]
        assert await targets(ada, org_id=2) == ["4", "1"]
        assert await targets(ada, org_id=3) == ["2"]  # nobody's tree any more; the entry stays
        page = await listed(ada, target_type="thing", limit=2, offset=1)
        assert ([entry["target_id"] for entry in page["entries"]], page["total"]) == (["3", "2"], 5)

    async def test_times(self, running: Running) -> None:
        """Both ends are included, in whatever zone they are given; UTC without one."""
        ada = await running.user("ada", role="admin")
        entries = (await listed(ada, target_type="thing"))["entries"]
        times = [entry["created_at"].replace("Z", "+00:00") for entry in entries]
        assert await targets(ada, since=times[2], until=times[1]) == ["3", "2"]
        assert await targets(ada, until=times[3].removesuffix("+00:00")) == ["1", "0"]
        assert await targets(ada, since="2999-01-01T00:00:00+14:00") == []
        assert len(await targets(ada, since="0001-01-01T00:00:00Z", until="9999-12-31T23:59:59Z")) == 5

    @pytest.mark.parametrize(
        ("query", "field"),
        [
            ({"actor_id": str(2**31)}, "actor_id"),
            ({"org_id": "0"}, "org_id"),
            ({"since": "yesterday"}, "since"),
            ({"since": "0001-01-01T00:00:00+14:00"}, "since"),
            ({"since": "2026-02-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"}, "until"),
        ],
    )
    async def test_out_of_range(self, start_platform: Start, query: dict[str, str], field: str) -> None:
        """A filter that can't be meant is refused, naming the field."""
        running = await start_platform()
        ada = await running.user("ada", role="admin")
        refused = await ada.get("/v1/audit", params=query)
        assert refused.status == 422
        assert refused.detail[0]["loc"] == ["query", field]


class TestWhoMayRead:
    async def test_manager(self, running: Running) -> None:
        """Whoever manages organizations sees their entries, counts those alone and can't ask past them."""
        await running.user("ada", role="admin")
        mara = await running.user("mara")
        body = await listed(mara)
        assert ([entry["target_id"] for entry in body["entries"]], body["total"]) == (["4", "1", "0"], 3)
        assert await targets(mara, org_id=2) == ["4", "1"]
        assert await targets(mara, target_id="2") == []
        assert (await mara.get("/v1/audit", params={"org_id": "3"})).status == 403

    async def test_more_organizations_than_a_statement_has_values(self, running: Running) -> None:
        """A manager of 40,000 organizations reads the log, too: PostgreSQL takes 32,767 values."""
        assert await targets(await running.user("vera")) == ["4", "2", "1"]

    async def test_without_organizations(self, start_platform: Start) -> None:
        """Where no plugin knows organizations, Platform Admins read, and may still ask for one."""
        running = await start_platform()
        ada, ulla = await running.user("ada", role="admin"), await running.user("ulla")
        await running.platform.database.write(
            lambda unit: audit(unit, "thing.created", "thing", 1, scope_org_id=5)
        )
        assert await targets(ada, org_id=5) == ["1"]
        assert (await ulla.get("/v1/audit")).status == 403


class TestKeeping:
    @pytest.mark.parametrize(
        "change",
        [
            update(AuditEntry).values(action="nothing.happened"),
            update(AuditEntry).where(AuditEntry.id == 1).values(actor_id=None),
            delete(AuditEntry),
        ],
        ids=["update", "update one", "delete"],
    )
    async def test_database_refuses(self, running: Running, change: Any) -> None:
        """No statement of the platform, or of an operator's tool, alters or deletes an entry."""
        before = [vars(entry)["action"] for entry in await audited(running.platform)]
        with pytest.raises(DBAPIError, match="audit log"):
            await execute(running.platform.database, change)
        assert [entry.action for entry in await audited(running.platform)] == before

    async def test_postgresql_truncates_nothing(self, start_platform: Start, postgres_url: str) -> None:
        running = await start_platform(env={"DATABASE_URL": postgres_url})
        await running.user("ada")
        with pytest.raises(DBAPIError, match="audit log"):
            await execute(running.platform.database, text("TRUNCATE kernel_audit_entry"))
        assert len(await audited(running.platform)) == 1

    async def test_no_route_changes_it(self, start_platform: Start) -> None:
        """No method but GET is known under the path, also to a Platform Admin."""
        running = await start_platform()
        ada = await running.user("ada", role="admin")
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert (await ada.request(method, "/v1/audit", json={})).status in (404, 405)
            assert (await ada.request(method, "/v1/audit/1", json={})).status in (404, 405)
        assert (await listed(ada))["total"] == 2

    async def test_same_transaction(self, running: Running) -> None:
        """What is rolled back was never done: no entry of it stays."""
        before = len(await audited(running.platform))

        def fail(unit: Unit) -> None:
            audit(unit, "thing.created", "thing", 9)
            unit.session.flush()
            raise RuntimeError

        with pytest.raises(RuntimeError):
            await running.platform.database.write(fail)
        assert len(await audited(running.platform)) == before
