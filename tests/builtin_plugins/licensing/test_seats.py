"""Licenses of organizations: seats, exact under concurrency, and the best of what somebody has."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from kernel.testing import Running
from tests.builtin_plugins.licensing.licensing_support import LICENSES, activate, look_up, make_listing
from tests.builtin_plugins.tenancy.tenancy_support import join, make_org, somebody, suspend
from tests.fakes.deleting import delete_account

pytestmark = pytest.mark.asyncio(loop_scope="session")


def seats_of(organization: int, license_id: str, user: int | None = None) -> str:
    """The path of a license's seats, or of one of them."""
    base = f"/v1/marketplace/organizations/{organization}/licenses/{license_id}/seats"
    return base if user is None else f"{base}/{user}"


async def test_seats_are_never_oversold(licensing: Running) -> None:
    """Of ten members who get a seat at once, three have one."""
    admin, ann = await somebody(licensing, role="admin"), await somebody(licensing)
    organization = await make_org(licensing, ann)
    plugin = await make_listing(licensing, admin)
    made = await activate(admin, plugin["id"], organization_id=organization, seats=3)
    crowd = [await somebody(licensing) for _ in range(10)]
    for one in crowd:
        await join(licensing, organization, one)
    paths = [seats_of(organization, made["id"], one.user["id"]) for one in crowd]
    answers = await asyncio.gather(*(ann.put(path) for path in paths))
    assert Counter(answer.status for answer in answers) == {200: 3, 409: 7}
    listed = (await ann.get(seats_of(organization, made["id"]))).json()
    assert (listed["count"], listed["total"]) == (3, 3)
    tiers = [await look_up(admin, one.user["id"], plugin["id"]) for one in crowd]
    assert Counter(tiers) == {"pro": 3, None: 7}


async def test_the_best_counts(licensing: Running) -> None:
    """The better one of one's own license and of the organization's; a seat that is taken back is none."""
    admin, ann, ben = [await somebody(licensing, role=role) for role in ("admin", "user", "user")]
    organization = await make_org(licensing, ann)
    await join(licensing, organization, ben)
    plugin = await make_listing(licensing, admin)
    await activate(admin, plugin["id"], user_id=str(ben.user["id"]))
    shared = await activate(admin, plugin["id"], "enterprise", organization_id=organization, seats=1)
    assert shared["tenant_id"] == str(organization)
    assert await look_up(admin, ben.user["id"], plugin["id"]) == "pro"
    path = seats_of(organization, shared["id"], ben.user["id"])
    assert (await ann.put(path)).status == 200
    assert await look_up(admin, ben.user["id"], plugin["id"]) == "enterprise"
    assert (await ben.get(LICENSES)).json()["count"] == 2
    assert (await ann.delete(path)).status == 200
    assert await look_up(admin, ben.user["id"], plugin["id"]) == "pro"


async def test_a_seat_needs_the_membership(licensing: Running) -> None:
    """Only members get one, and it counts while they are members."""
    admin, ann, ben = [await somebody(licensing, role=role) for role in ("admin", "user", "user")]
    organization = await make_org(licensing, ann)
    plugin = await make_listing(licensing, admin)
    made = await activate(admin, plugin["id"], organization_id=organization, seats=5)
    path = seats_of(organization, made["id"], ben.user["id"])
    assert (await ann.put(path)).status == 404
    await join(licensing, organization, ben)
    assert (await ann.put(path)).status == 200
    await suspend(licensing, organization, ben)
    assert await look_up(admin, ben.user["id"], plugin["id"]) is None


async def test_billing_is_for_those_who_manage_it(licensing: Running) -> None:
    """Owners see and give seats; plain members and strangers do not, and another's license is unknown."""
    admin, ann, ben, eve = [await somebody(licensing, role=r) for r in ("admin", "user", "user", "user")]
    organization, other = await make_org(licensing, ann), await make_org(licensing, eve)
    await join(licensing, organization, ben)
    plugin = await make_listing(licensing, admin)
    made = await activate(admin, plugin["id"], organization_id=organization, seats=5)
    base = f"/v1/marketplace/organizations/{organization}/licenses"
    assert (await ann.get(base)).json()["licenses"][0]["seats"] == 5
    assert [(await one.get(base)).status for one in (ben, eve)] == [403, 403]
    assert (await eve.get(seats_of(other, made["id"]))).status == 404
    assert (await eve.put(seats_of(other, made["id"], eve.user["id"]))).status == 404


async def test_fewer_seats_than_taken(licensing: Running) -> None:
    admin, ann = await somebody(licensing, role="admin"), await somebody(licensing)
    organization = await make_org(licensing, ann)
    plugin = await make_listing(licensing, admin)
    made = await activate(admin, plugin["id"], organization_id=organization, seats=2)
    ben = await somebody(licensing)
    await join(licensing, organization, ben)
    for one in (ann, ben):
        assert (await ann.put(seats_of(organization, made["id"], one.user["id"]))).status == 200
    body = {"plugin_id": plugin["id"], "tier": "pro", "organization_id": organization, "seats": 1}
    answer = await admin.post(f"{LICENSES}/activate", json=body)
    assert (answer.status, answer.json()["code"]) == (409, "seats_taken")
    assert (await ann.get(seats_of(organization, made["id"]))).json()["total"] == 2


async def test_the_account_is_deleted(licensing: Running) -> None:
    """Its seat is free again; what was bought for it stays, under its id."""
    admin, ann, ben, eve = [await somebody(licensing, role=role) for role in ("admin", *["user"] * 3)]
    organization = await make_org(licensing, ann)
    plugin = await make_listing(licensing, admin)
    made = await activate(admin, plugin["id"], organization_id=organization, seats=1)
    for one in (ben, eve):
        await join(licensing, organization, one)
    assert (await ann.put(seats_of(organization, made["id"], ben.user["id"]))).status == 200
    own = await make_listing(licensing, admin)
    await activate(admin, own["id"], user_id=str(ben.user["id"]))
    assert (await ann.put(seats_of(organization, made["id"], eve.user["id"]))).status == 409
    await delete_account(licensing, ben)
    assert (await ann.put(seats_of(organization, made["id"], eve.user["id"]))).status == 200
    assert await look_up(admin, ben.user["id"], own["id"]) == "pro"
    body = {"plugin_id": own["id"], "tier": "free", "user_id": str(ben.user["id"])}
    assert (await admin.post(f"{LICENSES}/activate", json=body)).status == 422
