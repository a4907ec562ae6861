"""Checkout: from the provider's address over its signed notice to the license."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path

import pytest
from sqlalchemy import select, update

from builtin_plugins.licensing.models import Order
from builtin_plugins.licensing.services.checkout import MOST_PENDING
from builtin_plugins.licensing.services.expiry import EXPIRE_ORDERS
from kernel.sdk import NoPayload, utc_now
from kernel.testing import Actor, Running, platforms
from tests.builtin_plugins.licensing.conftest import PLUGINS
from tests.builtin_plugins.licensing.licensing_support import LICENSES, activate, look_up, make_listing
from tests.builtin_plugins.tenancy.tenancy_support import fresh, renew, somebody
from tests.fakes.checkout import Provider, provider_plugin
from tests.fakes.own_clock import OwnClock
from tests.fakes.rows import execute

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def buy(actor: Actor, plugin_id: str) -> str:
    answer = await actor.post(f"/v1/marketplace/plugins/{plugin_id}/checkout", json={"tier": "pro"})
    assert answer.status == 200, answer.body
    assert answer.json()["tier"] == "pro"
    return str(answer.json()["checkout_url"].rpartition("/")[2])


async def test_the_whole_way(licensing: Running, provider: Provider) -> None:
    """The buyer is sent to the provider; its notice makes the license active."""
    admin, ann = await somebody(licensing, role="admin"), await somebody(licensing)
    plugin = await make_listing(licensing, admin)
    order = await buy(ann, plugin["id"])
    assert provider.orders[order]["product"] == f"{plugin['name']} pro"
    assert await look_up(admin, ann.user["id"], plugin["id"]) is None
    assert (await provider.send(licensing.url, order, "paid", event=fresh("event")))[0] == 200
    assert await look_up(admin, ann.user["id"], plugin["id"]) == "pro"
    mine = (await ann.get(LICENSES)).json()["licenses"][0]
    key = (await ann.post(f"{LICENSES}/{mine['id']}/key")).json()["license_key"]
    body = {"license_key": key, "plugin_id": plugin["id"]}
    assert (await ann.post(f"{LICENSES}/validate", json=body)).json()["valid"] is True


async def test_a_notice_twice_and_at_once(licensing: Running, provider: Provider) -> None:
    """The same notice ten times at once makes one license, once: its key stays what it was."""
    admin, ann = await somebody(licensing, role="admin"), await somebody(licensing)
    plugin = await make_listing(licensing, admin)
    order, event = await buy(ann, plugin["id"]), fresh("event")
    sent = await asyncio.gather(
        *(provider.send(licensing.url, order, "paid", event=event) for _ in range(10))
    )
    assert {status for status, _ in sent} == {200}
    before = (await ann.get(LICENSES)).json()
    assert before["count"] == 1
    for again in (event, fresh("event")):
        await provider.send(licensing.url, order, "paid", event=again)
    assert (await ann.get(LICENSES)).json() == before


@pytest.mark.parametrize("order_of_arrival", list(permutations(("paid", "refunded", "cancelled"))))
async def test_notices_out_of_order(
    licensing: Running, provider: Provider, order_of_arrival: tuple[str, ...]
) -> None:
    """Whatever comes first, a refunded order ends without a license."""
    admin, ann = await somebody(licensing, role="admin"), await somebody(licensing)
    plugin = await make_listing(licensing, admin)
    order = await buy(ann, plugin["id"])
    for state in order_of_arrival:
        assert (await provider.send(licensing.url, order, state, event=fresh("event")))[0] == 200
    assert await look_up(admin, ann.user["id"], plugin["id"]) is None


async def test_a_better_license_is_kept(licensing: Running, provider: Provider) -> None:
    """A better tier can't be bought down, and one activated before the payment arrives stays."""
    admin, ann = await somebody(licensing, role="admin"), await somebody(licensing)
    plugin = await make_listing(licensing, admin)
    order = await buy(ann, plugin["id"])
    await activate(admin, plugin["id"], "enterprise", user_id=str(ann.user["id"]))
    refused = await ann.post(f"/v1/marketplace/plugins/{plugin['id']}/checkout", json={"tier": "pro"})
    assert (refused.status, refused.json()["code"]) == (409, "better_license")
    before = (await ann.get(LICENSES)).json()
    for state in ("paid", "refunded"):
        assert (await provider.send(licensing.url, order, state, event=fresh("event")))[0] == 200
        assert (await ann.get(LICENSES)).json() == before


async def test_a_refund_brings_back_what_was_there(licensing: Running, provider: Provider) -> None:
    """Payment raises the tier and keeps the key; after its refund the earlier license is as it was."""
    admin, ann = await somebody(licensing, role="admin"), await somebody(licensing)
    plugin = await make_listing(licensing, admin)
    given = await activate(admin, plugin["id"], "community", user_id=str(ann.user["id"]), trial_days=30)
    before = (await ann.get(LICENSES)).json()["licenses"][0]
    first, second = await buy(ann, plugin["id"]), await buy(ann, plugin["id"])
    for order, state in ((first, "paid"), (second, "paid"), (first, "refunded")):
        assert (await provider.send(licensing.url, order, state, event=fresh("event")))[0] == 200
        key = {"license_key": given["license_key"], "plugin_id": plugin["id"]}
        assert (await ann.post(f"{LICENSES}/validate", json=key)).json()["tier"] == "pro"
    assert _days((await ann.get(LICENSES)).json()["licenses"][0]) in (364, 365)
    await provider.send(licensing.url, second, "refunded", event=fresh("event"))
    after = (await ann.get(LICENSES)).json()["licenses"][0]
    used = ("usage_count", "last_used_at")
    assert {k: v for k, v in after.items() if k not in used} == {
        k: v for k, v in before.items() if k not in used
    }


async def test_the_same_tier_again_is_added(licensing: Running, provider: Provider) -> None:
    """Who pays a second year before the first has ended has both."""
    admin, ann = await somebody(licensing, role="admin"), await somebody(licensing)
    plugin = await make_listing(licensing, admin)
    for _ in range(2):
        order = await buy(ann, plugin["id"])
        await provider.send(licensing.url, order, "paid", event=fresh("event"))
    found = (await ann.get(LICENSES)).json()["licenses"][0]
    assert _days(found) in (729, 730)


@pytest.mark.long
async def test_a_second_year_on_a_machine_with_another_clock(
    tmp_path: Path, provider: Provider, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Years are counted by the database's clock: what is left is not lost where a machine is ahead."""
    clock = OwnClock(monkeypatch)
    async with platforms(tmp_path) as start:
        env = {"DATABASE_URL": postgres_url}
        running = await start(*PLUGINS, provider_plugin(provider.url), env=env)
        admin, ann = await somebody(running, role="admin"), await somebody(running)
        plugin = await make_listing(running, admin)
        for moment in (0.0, 2 * 365 * 24 * 3600.0):
            order = await buy(ann, plugin["id"])
            clock.by(moment)
            await provider.send(running.url, order, "paid", event=fresh("event"))
        unpaid = await buy(ann, plugin["id"])
        await _hold_valid(running, ann, plugin["id"])
        assert await _expire(running, unpaid) == ["pending"]
        clock.by(0)
        assert await _expire(running, unpaid) == ["pending"]
        found = (await ann.get(LICENSES)).json()["licenses"][0]
        assert _days(found) in (729, 730)
        assert datetime.fromisoformat(found["valid_from"]) <= datetime.now(UTC).replace(tzinfo=None)


async def _hold_valid(running: Running, holder: Actor, plugin_id: str) -> None:
    """Assert that the holder's license is valid everywhere, in sessions begun at this machine's time."""
    admin, token = await somebody(running, role="admin"), holder.token
    await renew(running, holder)
    (listed,) = (await holder.get(LICENSES)).json()["licenses"]
    key = (await holder.post(f"{LICENSES}/{listed['id']}/key")).json()["license_key"]
    body = {"license_key": key, "plugin_id": plugin_id}
    assert listed["active"] and (await holder.post(f"{LICENSES}/validate", json=body)).json()["valid"]
    assert await look_up(admin, holder.user["id"], plugin_id) == "pro"
    holder.token = token


async def test_orders_that_nobody_paid_expire(licensing: Running, provider: Provider) -> None:
    """The job marks old ones, which make room for others; a payment that arrives later still counts."""
    admin, ann = await somebody(licensing, role="admin"), await somebody(licensing)
    plugin = await make_listing(licensing, admin)
    path = f"/v1/marketplace/plugins/{plugin['id']}/checkout"
    tries = [ann.post(path, json={"tier": "pro"}) for _ in range(MOST_PENDING + 5)]
    answers = await asyncio.gather(*tries)
    assert sorted(one.status for one in answers) == [200] * MOST_PENDING + [409] * 5
    assert {one.json()["code"] for one in answers if one.status == 409} == {"too_many_orders"}
    first, second, *_ = (
        one.json()["checkout_url"].rpartition("/")[2] for one in answers if one.status == 200
    )
    await _age(licensing, first, days=31)
    assert await _expire(licensing, first, second) == ["expired", "pending"]
    assert (await ann.post(path, json={"tier": "pro"})).status == 200
    assert (await provider.send(licensing.url, first, "paid", event=fresh("event")))[0] == 200
    assert await look_up(admin, ann.user["id"], plugin["id"]) == "pro"
    await _age(licensing, first, days=31)
    assert await _expire(licensing, first, second) == ["paid", "pending"]


async def _age(running: Running, order: str, *, days: int) -> None:
    began = utc_now() - timedelta(days=days)
    await execute(running.platform.database, update(Order).where(Order.id == order).values(created_at=began))


async def _expire(running: Running, *orders: str) -> list[str]:
    """Run the job that the schedule starts; returns the states of these orders."""
    await running.platform.database.write(lambda unit: unit.enqueue(EXPIRE_ORDERS, NoPayload()))
    await running.run_jobs()
    query = select(Order.id, Order.state).where(Order.id.in_(orders))
    rows = await running.platform.database.read(lambda session: session.execute(query).all())
    states = {row.id: str(row.state) for row in rows}
    return [states[order] for order in orders]


def _days(license_: dict[str, str]) -> int:
    ends, began = (datetime.fromisoformat(license_[name]) for name in ("valid_until", "valid_from"))
    return (ends - began).days


async def test_another_provider_knows_no_order(tmp_path: Path, provider: Provider) -> None:
    """A notice that one provider signed settles no order of another."""
    async with platforms(tmp_path) as start:
        plugins = (provider_plugin(provider.url), provider_plugin("", "pennyworth"))
        running = await start("tenancy", "marketplace", "licensing", *plugins)
        admin = await running.user(role="admin")
        ann = await running.user()
        plugin = await make_listing(running, admin)
        order = await buy(ann, plugin["id"])
        wrong = await provider.send(running.url, order, "paid", event="e1", provider="pennyworth")
        assert wrong[0] == 404
        assert await look_up(admin, ann.user["id"], plugin["id"]) is None
        assert (await provider.send(running.url, order, "paid", event="e1"))[0] == 200


async def test_wrong_notices(licensing: Running, provider: Provider) -> None:
    """A wrong signature is 401 and changes nothing; an unknown order or provider is 404."""
    admin, ann = await somebody(licensing, role="admin"), await somebody(licensing)
    plugin = await make_listing(licensing, admin)
    order = await buy(ann, plugin["id"])
    forged = await provider.send(licensing.url, order, "paid", event="e", secret=b"guessed")
    assert forged[0] == 401
    assert await look_up(admin, ann.user["id"], plugin["id"]) is None
    assert (await provider.send(licensing.url, "unknown", "paid", event=fresh("event")))[0] == 404
    path = "/v1/marketplace/checkout/nobody/notices"
    assert (await licensing.anonymous.post(path, json={})).status == 404


async def test_wrong_orders(licensing: Running) -> None:
    """A tier that costs nothing is 422; a plugin that is unknown or not approved is 404."""
    admin, ann = await somebody(licensing, role="admin"), await somebody(licensing)
    plugin = await make_listing(licensing, admin)
    path = f"/v1/marketplace/plugins/{plugin['id']}/checkout"
    for tier in ("community", "gold"):
        assert (await ann.post(path, json={"tier": tier})).status == 422
    draft = {"name": fresh("draft"), "display_name": "Draft", "author": "Ann"}
    made = (await ann.post("/v1/marketplace/plugins", json=draft)).json()
    for plugin_id in (made["id"], "00000000-0000-4000-8000-000000000000"):
        answer = await ann.post(f"/v1/marketplace/plugins/{plugin_id}/checkout", json={"tier": "pro"})
        assert answer.status == 404


@pytest.mark.parametrize("installed", [False, True], ids=["none", "not configured"])
async def test_without_a_provider(tmp_path: Path, installed: bool) -> None:
    """Where no provider is installed or configured, checkout is 503 and says so."""
    extra = [provider_plugin("")] if installed else []
    async with platforms(tmp_path) as start:
        running = await start("tenancy", "marketplace", "licensing", *extra)
        admin = await running.user(role="admin")
        plugin = await make_listing(running, admin)
        path = f"/v1/marketplace/plugins/{plugin['id']}/checkout"
        answer = await admin.post(path, json={"tier": "pro"})
    assert (answer.status, answer.json()["code"]) == (503, "no_checkout_provider")


@pytest.mark.parametrize(("address", "status"), [("", 503), ("http://127.0.0.1:9", 502)])
async def test_orders_without_a_page_to_pay_at(tmp_path: Path, address: str, status: int) -> None:
    """They don't count as unpaid: whoever tries again and again can buy once the provider works."""
    async with platforms(tmp_path) as start:
        running = await start("tenancy", "marketplace", "licensing", provider_plugin(address))
        admin = await running.user(role="admin")
        plugin = await make_listing(running, admin)
        path = f"/v1/marketplace/plugins/{plugin['id']}/checkout"
        answers = [await admin.post(path, json={"tier": "pro"}) for _ in range(MOST_PENDING + 1)]
        faults = (await running.anonymous.get("/health")).json()["plugins"]
    assert {one.status for one in answers} == {status}
    if status == 502:
        assert answers[0].json()["code"] == "checkout_provider_away"
        assert "start_checkout" in str(faults["tillwise"])
