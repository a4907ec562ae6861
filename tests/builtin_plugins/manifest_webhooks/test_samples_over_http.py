"""The manifests that the repository ships, with real payloads of their kind, sent over HTTP."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

from kernel.testing import Start
from tests.builtin_plugins.manifest_webhooks.webhook_support import (
    github_headers,
    hits,
    send,
    standard_headers,
)
from tests.fakes.hash_embeddings import HashEmbeddings

SAMPLES = Path(__file__).parents[3] / "manifests" / "samples"
PAYLOADS = Path(__file__).parent / "payloads"


async def test_samples(start_platform: Start, database_url: str | None) -> None:
    """All three live at once: a GitHub issue, an Alertmanager group, a signed CRM form."""
    env = {"PLATFORM_MANIFESTS_DIR": str(SAMPLES), "DATABASE_URL": database_url}
    running = await start_platform("plugin_registry", "manifest_webhooks", HashEmbeddings(), env=env)
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

    answer = await send(client, "/prometheus/alerts", body["prometheus-alerts"])
    assert answer.status == 200, answer.body
    found = await hits(client, "prometheus-alerts", "which file system is almost full")
    assert found[0]["metadata"]["labels"]["severity"] == "critical"

    form = body["crm-form"]
    answer = await send(
        client, "/crm/form", form, standard_headers(key, form, "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W")
    )
    assert answer.status == 200, answer.body
    found = await hits(client, "crm-form", "deliver on Saturdays")
    assert found[0]["metadata"]["contact"]["company"] == "Yıldız Lojistik A.Ş."
    assert (await client.get("/health")).json()["checks"]["manifests"] == "healthy"


async def test_ping_of_github(start_platform: Start) -> None:
    """The ping that GitHub sends first is acknowledged: GitHub shows the webhook as working."""
    env = {"PLATFORM_MANIFESTS_DIR": str(SAMPLES)}
    running = await start_platform("plugin_registry", "manifest_webhooks", HashEmbeddings(), env=env)
    running.platform.secrets.set("github-issues", "kept secret")
    ping = json.dumps({"zen": "Keep it logically awesome.", "hook_id": 1}).encode()
    headers = github_headers(b"kept secret", ping, "p1", "ping")
    answer = await send(running.anonymous, "/github/issues", ping, headers)
    assert (answer.status, answer.json()) == (
        200,
        {
            "message": "Skipped",
            "plugin": "github-issues",
            "skipped": "GitHub's ping: the webhook is set up",
        },
    )
