"""GitHub's own examples: in a burst, repeated, beside strangers, and with the platform killed meanwhile."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from builtin_plugins.vectors.api import VECTORS
from kernel.testing import Reply, Running, Start
from tests.builtin_plugins.manifest_webhooks.github_deliveries import (
    PATH,
    SAMPLE,
    SECRET,
    GitHubDelivery,
    github_deliveries,
)
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.processes import Served

BURST = 200
COLLECTION = "manifest:github-issues:github-issues"


async def send(running: Running, delivery: GitHubDelivery, **changed: str) -> Reply:
    return await running.anonymous.post(
        PATH,
        data=delivery.body,
        headers=delivery.headers | {k.replace("_", "-"): v for k, v in changed.items()},
    )


@pytest.mark.long
async def test_burst(start_platform: Start, platform_home: Path) -> None:
    """200 signed deliveries at once, while a stranger at the same address floods the path: none is refused.

    Issues with a description are stored, all others acknowledged. Sent again, nothing is there twice.
    """
    env = {"RATE_LIMIT_ENABLED": "true"}
    env["PLATFORM_MANIFESTS_DIR"] = str(SAMPLE.parent)
    running = await start_platform("manifest_webhooks", HashEmbeddings(), env=env)
    running.platform.secrets.set("github-issues", SECRET.decode())
    deliveries = github_deliveries(BURST)
    forged = "sha256=" + "0" * 64
    strangers = [send(running, delivery, X_Hub_Signature_256=forged) for delivery in deliveries[:60]]
    refused, answers = await asyncio.gather(
        asyncio.gather(*strangers), asyncio.gather(*(send(running, delivery) for delivery in deliveries))
    )
    assert {answer.status for answer in refused} == {401, 429}
    check(deliveries, answers)
    stored = sum(delivery.is_stored for delivery in deliveries)
    assert stored > BURST / 3 and await running.platform.resource(VECTORS).count(COLLECTION) == stored
    again = await asyncio.gather(*(send(running, delivery) for delivery in deliveries))
    assert [answer.json() for answer in again] == [answer.json() for answer in answers]
    assert await running.platform.resource(VECTORS).count(COLLECTION) == stored


def check(deliveries: list[GitHubDelivery], answers: list[Reply]) -> None:
    """Each delivery is acknowledged, and is stored or skipped for the right reason."""
    assert Counter(answer.status for answer in answers) == {200: BURST}
    for delivery, answer in zip(deliveries, answers, strict=True):
        body = answer.json()
        if delivery.is_stored:
            assert body["result"]["metadata"]["url"] == delivery.payload["issue"]["html_url"]
        else:
            reasons = {"issues": ".issue.", "ping": "GitHub's ping"}
            assert reasons.get(delivery.event, f"X-GitHub-Event: {delivery.event}") in body["skipped"]


async def deliver(
    served: Served, delivery: GitHubDelivery, points: dict[str, str], under_way: asyncio.Event | None = None
) -> None:
    async with served.session.post(served.url + PATH, data=delivery.body, headers=delivery.headers) as answer:
        assert answer.status == 200, await answer.text()
        if delivery.is_stored:
            points[delivery.id] = (await answer.json())["result"]["point_id"]
            if under_way is not None and len(points) >= BURST / 8:
                under_way.set()
