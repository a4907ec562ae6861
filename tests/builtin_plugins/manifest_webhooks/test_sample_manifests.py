"""The samples in manifests/ with deliveries of their kind: valid, provable, rendered."""

from __future__ import annotations

import base64
import hashlib
import hmac
from pathlib import Path
from typing import Any

import pytest
from jsonschema.protocols import Validator

from builtin_plugins.manifest_webhooks.catalog import resolve
from builtin_plugins.manifest_webhooks.loading import read_manifest
from builtin_plugins.manifest_webhooks.manifest import Manifest
from builtin_plugins.manifest_webhooks.payload import parse_payload, render
from builtin_plugins.manifest_webhooks.proofs import Proof, verify
from builtin_plugins.manifest_webhooks.templates import compile_template, render_metadata
from builtin_plugins.manifest_webhooks.validation import check_manifest, misspelt_keys

SAMPLES = Path(__file__).parents[3] / "manifests" / "samples"
PAYLOADS = Path(__file__).parent / "payloads"
NAMES = sorted(path.stem for path in PAYLOADS.iterdir())
NOW = 1_793_000_000


def body_of(name: str) -> bytes:
    return (PAYLOADS / f"{name}.json").read_bytes()


def load(name: str, schema: Validator) -> Manifest:
    return check_manifest(read_manifest(SAMPLES / f"{name}.yaml"), schema, name)


def rendered(manifest: Manifest, body: bytes) -> tuple[str, dict[str, Any]]:
    payload = parse_payload("application/json", body)
    source = manifest.store.input
    return compile_template(source.text).render(payload), render_metadata(source.metadata, payload)


def test_every_sample_is_tested() -> None:
    """No sample without its test, and none missing."""
    assert sorted(path.stem for path in SAMPLES.iterdir()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_sample_is_valid(name: str, schema: Validator) -> None:
    """Each sample is valid, has no misspelt key and bears its file's name."""
    assert load(name, schema).name == name
    assert misspelt_keys(read_manifest(SAMPLES / f"{name}.yaml"), schema) == []


def test_samples_live_side_by_side(schema: Validator) -> None:
    """All samples can be live at once."""
    catalog = resolve({f"{name}.yaml": load(name, schema) for name in NAMES}, set())
    assert sorted(catalog.live) == NAMES


def test_github_issue(schema: Validator) -> None:
    """A signed delivery of the issues event is proved and rendered."""
    manifest, body = load("github-issues", schema), body_of("github-issues")
    digest = hmac.new(b"kept secret", body, hashlib.sha256).hexdigest()
    headers = {
        "X-Hub-Signature-256": f"sha256={digest}",
        "X-GitHub-Delivery": "72d3162e",
        "X-GitHub-Event": "issues",
    }
    assert manifest.webhook.secret_ref == "github-issues"
    assert verify(headers, body, [b"kept secret"], NOW).event_id == "72d3162e"
    text, metadata = rendered(manifest, body)
    assert text == (
        "Codertocat/Hello-World#1: Spelling error in the README file\n"
        'It looks like you accidentally spelled "commit" with two "t"s — déjà vu.'
    )
    assert metadata == {
        "action": "opened",
        "url": "https://github.com/Codertocat/Hello-World/issues/1",
        "state": "open",
        "author": "Codertocat",
        "repository": "Codertocat/Hello-World",
        "source": "github",
    }


def test_prometheus_alerts(schema: Validator) -> None:
    """Each alert of an Alertmanager notification is a record of its own."""
    manifest = load("prometheus-alerts", schema)
    records = render(manifest, Proof(None, "bearer"), "application/json", body_of("prometheus-alerts"))
    assert [record.text.splitlines()[:2] for record in records] == 2 * [
        [
            "Alert NodeFilesystemAlmostFull is firing, severity critical.",
            "A file system has less than 5% of its space left.",
        ]
    ]
    assert '"instance":"db-2:9100"' in records[1].text
    assert [record.metadata["started"] for record in records] == [
        "2026-11-03T09:52:26.739Z",
        "2026-11-03T09:53:26.739Z",
    ]
    assert len({record.event_id for record in records}) == 2


def test_crm_form(schema: Validator) -> None:
    """A Standard Webhooks delivery is proved and rendered; values that are not text are kept."""
    manifest, body = load("crm-form", schema), body_of("crm-form")
    key = hashlib.sha256(b"any 32 bytes").digest()
    digest = hmac.new(key, f"msg_1.{NOW}.".encode() + body, hashlib.sha256).digest()
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(NOW),
        "webhook-signature": "v1," + base64.b64encode(digest).decode(),
    }
    assert manifest.webhook.secret_ref == "crm-form"
    assert verify(headers, body, [b"whsec_" + base64.b64encode(key)], NOW + 60).event_id == "msg_1"
    text, metadata = rendered(manifest, body)
    assert text.splitlines()[0] == "Contact us: Delivery windows in Izmir"
    assert metadata["contact"] == {"id": "50731", "company": "Yıldız Lojistik A.Ş."}
    assert (metadata["tags"], metadata["priority"]) == (["crm", "contact-form"], 2)
