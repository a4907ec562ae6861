"""Installs and ratings: caps, dependencies, aggregates; exact however many ask at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from kernel.testing import Actor
from tests.builtin_plugins.marketplace.conftest import Market
from tests.builtin_plugins.marketplace.marketplace_support import NOWHERE, PLUGINS, bring, draft
from tests.fakes.deleting import delete_account, deletion

pytestmark = pytest.mark.asyncio(loop_scope="session")

MINE = "/v1/marketplace/installations/me"


async def approved(market: Market, number: int) -> list[dict[str, Any]]:
    author = await market.user()
    return [await bring(author, market.admin, "approved", current_version="1.0") for _ in range(number)]


async def statuses(actor: Actor, plugin_id: str, *verbs: str) -> list[int]:
    """What is answered to one call after the other."""
    codes = []
    for verb in verbs:
        method = "DELETE" if verb == "uninstall" else "POST"
        codes.append((await actor.request(method, f"{PLUGINS}/{plugin_id}/{verb}")).status)
    return codes


async def mine(actor: Actor) -> dict[str, bool]:
    answer = (await actor.get(MINE)).json()
    assert answer["count"] == len(answer["installations"])
    return {one["plugin_id"]: one["enabled"] for one in answer["installations"]}


async def test_an_install(market: Market) -> None:
    """Installed, enabled, listed with the catalog's words; twice is once; the first counts as a download."""
    ann = await market.user()
    (plugin,) = await approved(market, 1)
    path = f"{PLUGINS}/{plugin['id']}"
    first = await ann.post(f"{path}/install")
    assert first.status == 200, first.body
    assert (first.json()["status"], first.json()["enabled"], first.json()["version"]) == (
        "installed",
        True,
        "1.0",
    )
    assert (await ann.post(f"{path}/install")).json() == first.json()
    listed = (await ann.get(MINE)).json()["installations"]
    assert [(one["plugin_id"], one["name"]) for one in listed] == [(plugin["id"], plugin["name"])]
    assert (await ann.get(path)).json()["download_count"] == 1
    assert await statuses(ann, plugin["id"], "disable", "enable", "uninstall", "uninstall") == [
        200,
        200,
        200,
        404,
    ]
    assert await statuses(ann, plugin["id"], "enable", "disable", "install") == [404, 404, 200]
    assert (await ann.get(path)).json()["download_count"] == 1


async def test_the_cap_is_exact(market: Market) -> None:
    """Of twelve installs at once five succeed; enabling what is installed does not count."""
    ann = await market.user()
    plugins = await approved(market, 12)
    answers = await asyncio.gather(*(ann.post(f"{PLUGINS}/{one['id']}/install") for one in plugins))
    assert Counter(answer.status for answer in answers) == {200: 5, 409: 7}
    assert {a.json()["code"] for a in answers if a.status == 409} == {"too_many_installed"}
    installed = await mine(ann)
    assert len(installed) == 5
    one = next(iter(installed))
    assert await statuses(ann, one, "install", "disable", "enable", "uninstall") == [200, 200, 200, 200]
    free = next(plugin["id"] for plugin in plugins if plugin["id"] not in installed)
    assert await statuses(ann, free, "install") == [200]


async def test_the_same_install_at_once(market: Market) -> None:
    """Ten clients of one account make one row and one download."""
    ann = await market.user()
    (plugin,) = await approved(market, 1)
    answers = await asyncio.gather(*(ann.post(f"{PLUGINS}/{plugin['id']}/install") for _ in range(10)))
    assert {answer.status for answer in answers} == {200}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert (await ann.get(f"{PLUGINS}/{plugin['id']}")).json()["download_count"] == 1


async def test_dependencies(market: Market) -> None:
    """What is required is named when it is missing, enabled with it, and kept while it is needed."""
    ann = await market.user()
    tide, port = await approved(market, 2)
    market.requires[tide["id"]] = [(port["id"], port["name"])]
    refused = await ann.post(f"{PLUGINS}/{tide['id']}/install")
    assert refused.status == 409
    assert port["name"] in refused.json()["detail"]
    assert await mine(ann) == {tide["id"]: False}
    missing = await ann.post(f"{PLUGINS}/{tide['id']}/enable")
    assert (missing.status, missing.json()["code"]) == (409, "dependency_missing")
    assert await statuses(ann, port["id"], "install", "disable") == [200, 200]
    enabled = (await ann.post(f"{PLUGINS}/{tide['id']}/enable")).json()
    assert enabled["auto_enabled_dependencies"] == [port["name"]]
    assert await mine(ann) == {tide["id"]: True, port["id"]: True}
    assert await statuses(ann, port["id"], "disable", "uninstall") == [409, 409]
    assert await statuses(ann, tide["id"], "disable") == [200]
    assert await statuses(ann, port["id"], "disable", "uninstall") == [200, 200]


async def test_everybodys_installs(market: Market) -> None:
    (plugin,) = await approved(market, 1)
    people = [await market.user() for _ in range(3)]
    for one in people:
        await statuses(one, plugin["id"], "install")
    path = f"{PLUGINS}/{plugin['id']}/installations"
    answer = (await market.admin.get(f"{path}?limit=2")).json()
    assert (answer["total"], answer["count"]) == (3, 2)
    assert {one["user_id"] for one in answer["installations"]} <= {str(one.user["id"]) for one in people}
    assert (await people[0].get(path)).status == 403
    assert (await market.admin.get(f"{PLUGINS}/{NOWHERE}/installations")).status == 404


async def test_a_rating(market: Market) -> None:
    """For those who have a plugin, or had it; an edit takes the place of the first and keeps its date."""
    ann, eve = await market.user(), await market.user()
    (plugin,) = await approved(market, 1)
    path = f"{PLUGINS}/{plugin['id']}/ratings"
    assert (await ann.post(path, json={"rating": 5})).status == 403
    await statuses(ann, plugin["id"], "install", "uninstall")
    first = await ann.post(path, json={"rating": 5, "review_text": "<b>Good</b>"})
    assert first.status == 201
    assert (first.json()["rating_average"], first.json()["rating_count"]) == (5.0, 1)
    edited = (await ann.post(path, json={"rating": 2})).json()
    assert (edited["rating_average"], edited["rating_count"], edited["review_text"]) == (2.0, 1, None)
    assert (edited["id"], edited["created_at"]) == (first.json()["id"], first.json()["created_at"])
    await statuses(eve, plugin["id"], "install")
    await eve.post(path, json={"rating": 3})
    shown = (await market.running.anonymous.get(path)).json()
    assert (shown["rating_average"], shown["rating_count"], shown["total"]) == (2.5, 2, 2)
    assert [one["rating"] for one in shown["reviews"]] == [3, 2]
    listing = (await ann.get(f"{PLUGINS}/{plugin['id']}")).json()
    assert (listing["rating_average"], listing["rating_count"]) == (2.5, 2)


async def test_ratings_at_once(market: Market) -> None:
    """However many rate and edit together, the aggregate is that of the rows."""
    (plugin,) = await approved(market, 1)
    people = [await market.user() for _ in range(8)]
    for one in people:
        await statuses(one, plugin["id"], "install")
    path = f"{PLUGINS}/{plugin['id']}/ratings"
    given = [(one, 1 + (at + turn) % 5) for at, one in enumerate(people) for turn in range(3)]
    answers = await asyncio.gather(*(one.post(path, json={"rating": stars}) for one, stars in given))
    assert {answer.status for answer in answers} == {201}
    shown = (await market.admin.get(f"{path}?limit=100")).json()
    stars = [one["rating"] for one in shown["reviews"]]
    assert (len(stars), shown["rating_count"]) == (8, 8)
    assert shown["rating_average"] == round(sum(stars) / 8, 2)
    assert (await market.admin.get(f"{PLUGINS}/{NOWHERE}/ratings")).status == 404


async def test_the_account_is_deleted(market: Market) -> None:
    """Its ratings no longer count, its installs and unpublished listings are gone; others' stay."""
    ann, eve = await market.user(), await market.user()
    (plugin,) = await approved(market, 1)
    path = f"{PLUGINS}/{plugin['id']}"
    for one, stars in ((ann, 1), (eve, 4)):
        await statuses(one, plugin["id"], "install")
        assert (await one.post(f"{path}/ratings", json={"rating": stars})).status == 201
    mine_, theirs = await draft(ann), await draft(eve)
    waiting = await bring(ann, market.admin, "submitted")
    await delete_account(market.running, ann)
    shown = (await eve.get(f"{path}/ratings")).json()
    assert (shown["rating_average"], shown["rating_count"], shown["total"]) == (4.0, 1, 1)
    installs = (await market.admin.get(f"{path}/installations")).json()["installations"]
    assert [one["user_id"] for one in installs] == [str(eve.user["id"])]
    for listing, status in ((mine_, 404), (waiting, 404), (theirs, 200)):
        reader = eve if listing is theirs else market.admin
        assert (await reader.get(f"{PLUGINS}/{listing['id']}")).status == status


async def test_the_author_is_deleted(market: Market) -> None:
    """Published listings need an heir, who becomes their author; the e-mail address is removed."""
    ann, eve = await market.user(), await market.user()
    listing = await bring(ann, market.admin, "approved", author_email=ann.user["email"])
    refused = await deletion(market.running, ann)
    assert refused.status == 409
    assert [thing["id"] for thing in refused.detail["shared"]] == [listing["id"]]
    await delete_account(market.running, ann, heir_id=eve.user["id"])
    shown = (await eve.get(f"{PLUGINS}/{listing['id']}")).json()
    assert (shown["status"], shown.get("author_email")) == ("approved", None)
    own = (await eve.get("/v1/marketplace/submissions/mine")).json()
    assert listing["id"] in str(own)
