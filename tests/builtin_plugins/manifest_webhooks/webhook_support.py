"""Manifests, signed deliveries and waiting, for tests over HTTP."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml
from sqlalchemy import select

from builtin_plugins.manifest_webhooks.models import DeliveryRow, EventRow
from builtin_plugins.manifest_webhooks.storing import FORGET_OLD
from kernel.sdk import NoPayload, Unit
from kernel.testing import Actor, Reply, Running, eventually

TAKES_EFFECT = 30.0


def manifest(name: str = "notes", path: str = "/notes", **changes: Any) -> dict[str, Any]:
    """A manifest that stores `{{ .text }}`.

    `changes`: collection, secret, proof, text, metadata, model, search (who may call that action), events,
    for_each, on_missing.
    """
    webhook: dict[str, Any] = {"path": path}
    if "secret" in changes:
        webhook["secretRef"] = changes["secret"]
    if "proof" in changes:
        webhook["proof"] = changes["proof"]
    if "events" in changes:
        webhook["events"] = changes["events"]
    source = {"text": changes.get("text", "{{ .text }}"), "metadata": changes.get("metadata", {})}
    if "for_each" in changes:
        source["forEach"] = changes["for_each"]
    if "on_missing" in changes:
        source["onMissing"] = changes["on_missing"]
    store: dict[str, Any] = {"collection": changes.get("collection", "notes"), "input": source}
    if "model" in changes:
        store["embedModel"] = changes["model"]
    spec: dict[str, Any] = {
        "trigger": {"type": "webhook", "webhook": webhook},
        "action": {"type": "store-vector", "store": store},
    }
    if "search" in changes:
        spec["access"] = {"search": changes["search"]}
    return {
        "apiVersion": "platform.dev/v1alpha1",
        "kind": "Plugin",
        "metadata": {"name": name, "version": "1.0.0", "description": "Notes"},
        "spec": spec,
    }


def drop(folder: Path, file: str, document: dict[str, Any] | str) -> Path:
    """Put a manifest into the folder, as an operator's editor does: beside, then renamed."""
    folder.mkdir(parents=True, exist_ok=True)
    text = document if isinstance(document, str) else yaml.safe_dump(document)
    temporary = folder / f".{file}.swp"
    temporary.write_text(text, encoding="utf-8")
    return temporary.rename(folder / file)


def folder_of(running: Running) -> Path:
    """The manifests folder of a platform under test."""
    return running.platform.settings.home / "manifests"


def names(folder: Path) -> list[str]:
    """What lies in the folder, hidden files included."""
    return sorted(path.name for path in folder.iterdir())


def standard_headers(
    key: bytes, body: bytes, event: str = "msg_1", *, age: int = 0, content_type: str = "application/json"
) -> dict[str, str]:
    """Headers of a Standard Webhooks delivery, signed `age` seconds ago."""
    moment = str(int(time.time()) - age)
    digest = hmac.new(key, f"{event}.{moment}.".encode() + body, hashlib.sha256).digest()
    return {
        "Content-Type": content_type,
        "webhook-id": event,
        "webhook-timestamp": moment,
        "webhook-signature": "v1," + base64.b64encode(digest).decode(),
    }


def github_headers(secret: bytes, body: bytes, delivery: str, event: str = "issues") -> dict[str, str]:
    """Headers of a GitHub delivery."""
    digest = hmac.new(secret, body, hashlib.sha256).hexdigest()
    return {
        "Content-Type": "application/json",
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": delivery,
        "X-Hub-Signature-256": f"sha256={digest}",
    }


async def send(actor: Actor, path: str, payload: Any, headers: dict[str, str] | None = None) -> Reply:
    """POST a JSON payload (or ready bytes) to a webhook."""
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return await actor.post(
        f"/webhook{path}", data=body, headers={"Content-Type": "application/json", **(headers or {})}
    )


async def hits(actor: Actor, plugin: str, query: str, limit: int = 10) -> list[dict[str, Any]]:
    """What a plugin's search answers; to a new account where `actor` has no token."""
    actor = actor if actor.token else await actor.running.user()
    answer = await actor.get(
        f"/v1/plugins/{plugin}/actions/search", params={"query": query, "limit": str(limit)}
    )
    assert answer.status == 200, answer.body
    results: list[dict[str, Any]] = answer.json()["result"]["hits"]
    return results


async def make_older(running: Running, age: timedelta) -> None:
    """Let what is kept of deliveries be older than it is, and run the job that forgets what is too old."""

    def change(unit: Unit) -> None:
        for event in unit.session.scalars(select(EventRow)):
            event.created_at -= age
        for delivery in unit.session.scalars(select(DeliveryRow)):
            delivery.received_at -= age
        unit.enqueue(FORGET_OLD, NoPayload())

    await running.platform.database.write(change)
    await running.run_jobs()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until the condition holds, as long as a change of a manifest may take; TimeoutError."""
    await eventually(condition, TAKES_EFFECT)
