"""The state machine of submissions: every state × move × role, its rows, and those who try at once."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from builtin_plugins.marketplace.states import STATUSES
from kernel.sdk.accounts import TOKENS
from kernel.testing import Actor, Reply, Running
from tests.builtin_plugins.marketplace.conftest import Market
from tests.builtin_plugins.marketplace.marketplace_support import (
    PLUGINS,
    SUBMISSIONS,
    bring,
    draft,
    move,
)
from tests.builtin_plugins.tenancy.tenancy_support import audited

pytestmark = pytest.mark.asyncio(loop_scope="session")

# (from, move, role) to the state that follows, straight from the table of spec 3.1.
LEGAL = {
    ("draft", "submit", "owner"): "submitted",
    ("draft", "submit", "admin"): "submitted",
    ("rejected", "submit", "owner"): "submitted",
    ("submitted", "claim", "admin"): "in_review",
    ("in_review", "approve", "admin"): "approved",
    ("submitted", "reject", "admin"): "rejected",
    ("in_review", "reject", "admin"): "rejected",
    ("approved", "archive", "admin"): "archived",
    ("draft", "submit", "service"): "submitted",
    ("approved", "archive", "service"): "archived",
}
TRIGGERS = ("submit", "claim", "approve", "reject", "archive")


def expected(status: str, trigger: str, role: str) -> tuple[int, str]:
    """The status of the answer, and the state of the listing afterwards."""
    if (status, trigger, role) in LEGAL:
        return 200, LEGAL[(status, trigger, role)]
    if role == "admin" or (role == "service" and trigger in ("submit", "archive")):
        return 409, status
    if trigger != "submit":
        return 403, status
    return (409 if role == "owner" else 404), status


@pytest.mark.parametrize("status", STATUSES)
async def test_every_move_of_every_role(market: Market, status: str) -> None:
    """A legal move is made and leaves one row; any other is refused and leaves none."""
    for trigger in TRIGGERS:
        for role in ("owner", "stranger", "admin", "service"):
            owner = await market.user()
            found = await bring(owner, market.admin, status)
            known = {"owner": owner, "admin": market.admin, "service": service_of(market.running)}
            actor = known.get(role) or await market.user()
            rows = await moves(market, found["id"])
            answer = await move(actor, found["id"], trigger)
            wanted, after = expected(status, trigger, role)
            assert answer.status == wanted, (status, trigger, role, answer.body)
            assert (await market.admin.get(f"{PLUGINS}/{found['id']}")).json()["status"] == after
            made = await moves(market, found["id"])
            assert len(made) == len(rows) + (wanted == 200)
            if wanted == 200:
                last = made[-1]
                assert (last["from_status"], last["to_status"]) == (status, after)
                who = "service:registry" if role == "service" else str(actor.user["id"])
                assert (last["actor"], last["actor_role"]) == (who, role)


def service_of(running: Running) -> Actor:
    return Actor(running, running.platform.resource(TOKENS).mint_service("registry", 1))


async def moves(market: Market, plugin_id: str) -> list[dict[str, object]]:
    """The rows that the moves of a listing left."""
    answer = await market.admin.get(f"{SUBMISSIONS}/{plugin_id}/history")
    assert answer.status == 200, answer.body
    transitions: list[dict[str, object]] = answer.json()["transitions"]
    return transitions


async def test_a_history_in_pages(market: Market) -> None:
    """Oldest first; without a limit, as much as a page can hold."""
    found = await bring(await market.user(), market.admin, "approved")
    path = f"{SUBMISSIONS}/{found['id']}/history"
    whole = (await market.admin.get(path)).json()
    assert (whole["count"], whole["total"], whole["limit"], whole["offset"]) == (3, 3, 500, 0)
    page = (await market.admin.get(f"{path}?limit=1&offset=1")).json()
    assert (page["transitions"], page["count"], page["total"]) == (whole["transitions"][1:2], 1, 3)
    for wrong in ("limit=0", "limit=501", "offset=-1"):
        assert (await market.admin.get(f"{path}?{wrong}")).status == 422


async def test_a_review(market: Market) -> None:
    """From a draft to the catalog, over a rejection whose notes the author reads."""
    author = await market.user()
    found = await bring(author, market.admin, "rejected")
    assert found["review_notes"] == "Add a license."
    mine = (await author.get(f"{SUBMISSIONS}/mine")).json()
    assert [one["id"] for one in mine["plugins"]] == [found["id"]]
    assert mine["plugins"][0]["review_notes"] == "Add a license."
    again = await move(author, found["id"], "submit")
    assert (again.json()["status"], again.json()["review_notes"]) == ("submitted", None)
    assert "metadata" in {one["check"] for one in again.json()["checks"]}
    claimed = await move(market.admin, found["id"], "claim")
    assert claimed.json()["reviewed_by"] == str(market.admin.user["id"])
    approved = (await move(market.admin, found["id"], "approve")).json()
    assert approved["published_at"] is not None
    shown = (await market.running.anonymous.get(f"{PLUGINS}/{found['id']}")).json()
    assert shown["status"] == "approved"
    assert (shown["review_notes"], shown["reviewed_by"], shown["checks"]) == (None, None, None)
    assert len(await audited(market.running, "listing.submit", found["id"])) == 2


@pytest.mark.parametrize("trigger", ["claim", "reject"])
async def test_two_reviewers_at_once(market: Market, trigger: str) -> None:
    """Of ten who try, one wins; the others hear 409, and there is one row."""
    found = await bring(await market.user(), market.admin, "submitted")
    answers = await asyncio.gather(*(move(market.admin, found["id"], trigger) for _ in range(10)))
    assert Counter(answer.status for answer in answers) == {200: 1, 409: 9}
    assert len(await moves(market, found["id"])) == 2


async def test_approval_against_rejection(market: Market) -> None:
    """One of the two wins, and the state is that of the winner."""
    for _ in range(5):
        found = await bring(await market.user(), market.admin, "in_review")
        answers: list[Reply] = await asyncio.gather(
            move(market.admin, found["id"], "approve"), move(market.admin, found["id"], "reject")
        )
        assert sorted(answer.status for answer in answers) == [200, 409]
        winner = next(answer.json()["status"] for answer in answers if answer.status == 200)
        assert (await market.admin.get(f"{PLUGINS}/{found['id']}")).json()["status"] == winner


@pytest.mark.parametrize("body", [None, {}, {"notes": ""}, {"notes": "   "}, {"notes": None}])
async def test_a_rejection_needs_notes(market: Market, body: object) -> None:
    found = await bring(await market.user(), market.admin, "submitted")
    answer = await market.admin.post(f"{SUBMISSIONS}/{found['id']}/reject", json=body)
    assert answer.status == 422
    assert (await market.admin.get(f"{PLUGINS}/{found['id']}")).json()["status"] == "submitted"


async def test_the_queue(market: Market) -> None:
    """Submissions of one status, the oldest first, and none that a service made; for administrators."""
    author = await market.user()
    first, second = [await bring(author, market.admin, "submitted") for _ in range(2)]
    answer = await market.admin.get(f"{SUBMISSIONS}?limit=100")
    ids = [one["id"] for one in answer.json()["plugins"]]
    assert ids.index(first["id"]) < ids.index(second["id"])
    assert {one["status"] for one in answer.json()["plugins"]} == {"submitted"}
    assert (await author.get(SUBMISSIONS)).status == 403
    assert (await market.admin.get(f"{SUBMISSIONS}?status=pending")).status == 422


async def test_a_service(market: Market) -> None:
    """What a service lists is approved at once and nobody's submission; it may archive it."""
    service = service_of(market.running)
    found = await draft(service)
    assert (found["status"], found["origin"], found["submitted_by"]) == ("approved", "first_party", None)
    assert found["id"] not in str((await market.admin.get(f"{SUBMISSIONS}?status=approved")).json())
    theirs = await bring(await market.user(), market.admin, "draft")
    refused = await service.put(f"{PLUGINS}/{theirs['id']}", json={"author": "Me"})
    assert refused.status == 409
    assert (await move(service, found["id"], "claim")).status == 403
    assert (await move(service, found["id"], "archive")).json()["status"] == "archived"
