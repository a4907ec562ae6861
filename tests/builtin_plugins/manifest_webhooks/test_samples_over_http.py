"""The manifests that the repository ships, with real payloads of their kind, sent over HTTP."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from kernel.testing import Running, platforms
from tests.builtin_plugins.manifest_webhooks.webhook_support import (
    github_headers,
    hits,
    send,
    standard_headers,
)
from tests.fakes.hash_embeddings import HashEmbeddings

SAMPLES = Path(__file__).parents[3] / "manifests" / "samples"
PAYLOADS = Path(__file__).parent / "payloads"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """A platform with all samples, whose tests use one or two of them each."""
    async with platforms(tmp_path_factory.mktemp("samples")) as start:
        plugins = ("owner_secrets", "plugin_registry", "manifest_webhooks", HashEmbeddings())
        yield await start(*plugins, env={"PLATFORM_MANIFESTS_DIR": str(SAMPLES)})


async def test_samples(running: Running) -> None:
    key = hashlib.sha256(b"any 32 bytes").digest()
    running.platform.secrets.set("github-issues", "kept secret")
    running.platform.secrets.set("crm-form", "whsec_" + base64.b64encode(key).decode())
    body = {path.stem: path.read_bytes() for path in PAYLOADS.iterdir()}
    client = running.anonymous

    issue = body["github-issues"]
    delivery = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
    answer = await send(client, "/github/issues", issue, github_headers(b"kept secret", issue, delivery))
    assert answer.status == 200, answer.body
    assert answer.json()["result"]["metadata"]["url"].endswith("/issues/1")
    assert "Spelling error" in (await hits(client, "github-issues", "spelling error README"))[0]["text"]

    form = body["crm-form"]
    answer = await send(
        client, "/crm/form", form, standard_headers(key, form, "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W")
    )
    assert answer.status == 200, answer.body
    found = await hits(client, "crm-form", "deliver on Saturdays")
    assert found[0]["metadata"]["contact"]["company"] == "Yıldız Lojistik A.Ş."


@dataclass(frozen=True)
class Sender:
    """A sample's sender: its secret, the headers of its delivery at a time, and what is found then."""

    secret: str
    headers: Callable[[bytes, int], dict[str, str]]
    query: str
    metadata: dict[str, Any]
    records: int = 1


def hexdigest(secret: str, message: bytes) -> str:
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


def slack(body: bytes, now: int) -> dict[str, str]:
    signature = hexdigest("kept secret", f"v0:{now}:".encode() + body)
    return {"X-Slack-Signature": f"v0={signature}", "X-Slack-Request-Timestamp": str(now)}


def stripe(body: bytes, now: int) -> dict[str, str]:
    return {"Stripe-Signature": f"t={now},v1={hexdigest('whsec_kept', f'{now}.'.encode() + body)}"}


def gitlab(body: bytes, now: int) -> dict[str, str]:
    headers = {"X-Gitlab-Token": "kept secret", "X-Gitlab-Event": "Issue Hook"}
    return {**headers, "Idempotency-Key": "f5e5f430-f57b-4e6e-9fac-d9128cd7232f"}


def bitbucket(body: bytes, now: int) -> dict[str, str]:
    headers = {"X-Event-Key": "issue:created", "X-Request-UUID": "0b2e1b2a"}
    return {**headers, "X-Hub-Signature": f"sha256={hexdigest('kept secret', body)}"}


def bearer(body: bytes, now: int) -> dict[str, str]:
    return {"Authorization": "Bearer kept secret"}


def basic(body: bytes, now: int) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(b"grafana:kept secret").decode()}


SENDERS = {
    "slack-messages": Sender("kept secret", slack, "freight lift", {"channel": "C024BE91L"}),
    "stripe-events": Sender("whsec_kept", stripe, "cold storage", {"customer": "cus_9s6XKzkNRiz8i3"}),
    "gitlab-issues": Sender("kept secret", gitlab, "repository API", {"author": "root"}),
    "bitbucket-issues": Sender("kept secret", bitbucket, "issue content", {"author": "Emma"}),
    "prometheus-alerts": Sender("kept secret", bearer, "db-2:9100", {"status": "firing"}, 2),
    "grafana-alerts": Sender("grafana:kept secret", basic, "zone eu-1", {"status": "firing"}, 2),
}


@pytest.mark.parametrize("name", SENDERS)
async def test_senders(running: Running, name: str) -> None:
    """The sender's documented payload is proved, stored once however often it comes, and found."""
    sender, client = SENDERS[name], running.anonymous
    body = (PAYLOADS / f"{name}.json").read_bytes()
    path = "/" + name.replace("-", "/")
    headers = sender.headers(body, int(time.time()))
    assert (await send(client, path, body, headers)).status == 503
    running.platform.secrets.set(name, "another secret")
    refused = await send(client, path, body, headers)
    assert (refused.status, refused.json()["code"]) == (401, "webhook_proof_refused")
    running.platform.secrets.set(name, sender.secret)
    answers = [await send(client, path, body, headers) for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 200], answers[0].body
    assert answers[0].json() == answers[1].json()
    found = await hits(client, name, sender.query)
    assert len(found) == sender.records
    assert found[0]["metadata"].items() >= sender.metadata.items()


async def test_challenge_of_slack(running: Running) -> None:
    """Slack's question is answered to Slack alone, and nothing is stored."""
    running.platform.secrets.set("slack-messages", "kept secret")
    question = {"token": "x", "challenge": "3eZbrw1aBm2rZgRNFdxV", "type": "url_verification"}
    body = json.dumps(question).encode()
    client = running.anonymous
    answer = await send(client, "/slack/messages", body, slack(body, int(time.time())))
    assert (answer.status, answer.json()) == (200, {"challenge": "3eZbrw1aBm2rZgRNFdxV"})
    assert (await send(client, "/slack/messages", body)).status == 401
    found = await hits(client, "slack-messages", question["challenge"])
    assert not [hit for hit in found if question["challenge"] in str(hit)]


async def test_ping_of_github(running: Running) -> None:
    """The ping that GitHub sends first is acknowledged, so GitHub shows the webhook as working."""
    running.platform.secrets.set("github-issues", "kept secret")
    ping = json.dumps({"zen": "Keep it logically awesome.", "hook_id": 1}).encode()
    headers = github_headers(b"kept secret", ping, "p1", "ping")
    answer = await send(running.anonymous, "/github/issues", ping, headers)
    assert answer.status == 200
    assert (answer.json()["plugin"], bool(answer.json()["skipped"])) == ("github-issues", True)
