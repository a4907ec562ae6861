"""Calling actions: who may, with which arguments, and what comes back."""

from __future__ import annotations

import pytest

from kernel.testing import Start
from tests.builtin_plugins.plugin_registry.registry_support import Shop

OWN = "plugin_registry"
BASE = "/v1/plugins/shop/actions"


async def test_read_action(start_platform: Start) -> None:
    """A read-only action takes its arguments from the query, without a token."""
    running = await start_platform(OWN, Shop)
    answer = await running.anonymous.get(f"{BASE}/find?word=tea&limit=7&tags=a&tags=b")
    assert answer.status == 200
    assert answer.json() == {
        "plugin": "shop",
        "action": "find",
        "result": {"word": "tea", "limit": 7, "tags": ["a", "b"], "caller": ""},
    }


async def test_write_action(start_platform: Start) -> None:
    """A write action needs a token and POST; an empty body means no arguments."""
    running = await start_platform(OWN, Shop)
    user = await running.user("ali")
    assert (await running.anonymous.post(f"{BASE}/restock")).status == 401
    assert (await user.get(f"{BASE}/restock")).status == 404
    for options in ({}, {"json": {}}):
        answer = await user.post(f"{BASE}/restock", **options)
        assert answer.status == 200 and answer.json()["result"]["word"] == "restocked"
    answer = await user.post(f"{BASE}/find", json={"word": "tea"})
    assert answer.json()["result"]["caller"] == "ali"


async def test_unknown(start_platform: Start) -> None:
    """An unknown plugin or action is 404 by both methods."""
    running = await start_platform(OWN, Shop)
    user = await running.user()
    for path in (f"{BASE}/dance", "/v1/plugins/nowhere/actions/find", f"/v1/plugins/{OWN}/actions/find"):
        assert (await user.get(path)).status == 404
        assert (await user.post(path)).status == 404


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("", "'word'"),
        ("word=t", "'word'"),
        ("word=tea&limit=99", "'limit'"),
        ("word=tea&limit=many", "'limit'"),
        ("word=tea&colour=red", "'colour'"),
    ],
)
async def test_wrong_arguments(start_platform: Start, query: str, named: str) -> None:
    """What does not fit is 400 and names the argument, and those there are."""
    running = await start_platform(OWN, Shop)
    answer = await running.anonymous.get(f"{BASE}/find?{query}")
    assert answer.status == 400
    assert named in answer.detail and "word (required), limit, tags" in answer.detail


@pytest.mark.parametrize(
    ("query", "body", "said"),
    [
        ("word=%00", rb'{"word": "a\u0000b"}', "'word': "),
        ("word=tea&tags=a&tags=%00", rb'{"word": "tea", "tags": ["a", "\u0000"]}', "'tags.1': "),
        ("%00=tea", rb'{"\u0000": "tea"}', "no argument"),
        (None, b'{"word": "tea", "limit": 1e999}', "'limit': "),
        (None, b'{"word": NaN}', "'word': "),
    ],
)
async def test_what_no_database_holds(
    start_platform: Start, query: str | None, body: bytes, said: str
) -> None:
    """NUL characters and infinite numbers reach no action: 400 names the argument."""
    running = await start_platform(OWN, Shop)
    user = await running.user()
    answer = await user.post(f"{BASE}/find", data=body)
    assert answer.status == 400 and said in answer.detail
    if query is not None:
        answer = await user.get(f"{BASE}/find?{query}")
        assert answer.status == 400 and said in answer.detail


async def test_failures(start_platform: Start) -> None:
    """The caller gets a PlatformError; any other error, a ValueError too, is a plain 500."""
    running = await start_platform(OWN, Shop)
    answer = await running.anonymous.get(f"{BASE}/complain")
    assert answer.status == 400 and answer.detail == "the shop is closed on Sundays"
    answer = await running.anonymous.get(f"{BASE}/crash")
    assert answer.status == 500 and b"hunter2" not in answer.body


async def test_rate_limits(start_platform: Start) -> None:
    """30 reads and 20 writes a minute for each caller and action; another caller has its own window."""
    env = {"RATE_LIMIT_ENABLED": "true", "RATE_LIMIT_PER_MINUTE": "1000"}
    running = await start_platform(OWN, Shop, env=env)
    first, second = await running.user(), await running.user()
    # A minute may turn over in the middle, which opens one more window.
    reads = [(await first.get(f"{BASE}/find?word=tea")).status for _ in range(61)]
    assert set(reads) == {200, 429} and reads.count(200) in (30, 60)
    writes = [(await first.post(f"{BASE}/restock")).status for _ in range(41)]
    assert set(writes) == {200, 429} and writes.count(200) in (20, 40)
    assert (await second.get(f"{BASE}/find?word=tea")).status == 200


async def test_at_the_service(start_platform: Start) -> None:
    running = await start_platform(OWN, Shop, only="plugin-registry")
    assert (await running.anonymous.get(f"{BASE}/find?word=tea")).status == 200
