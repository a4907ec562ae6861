"""The samples in manifests/ with deliveries of their kind: valid, provable, rendered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema.protocols import Validator

from builtin_plugins.manifest_webhooks.catalog import resolve
from builtin_plugins.manifest_webhooks.loading import read_manifest
from builtin_plugins.manifest_webhooks.manifest import Manifest
from builtin_plugins.manifest_webhooks.payload import parse_payload, render
from builtin_plugins.manifest_webhooks.proofs import Proof
from builtin_plugins.manifest_webhooks.templates import compile_template, render_metadata
from builtin_plugins.manifest_webhooks.validation import check_manifest, misspelt_keys

SAMPLES = Path(__file__).parents[3] / "manifests" / "samples"
PAYLOADS = Path(__file__).parent / "payloads"
NAMES = sorted(path.stem for path in PAYLOADS.iterdir())


def body_of(name: str) -> bytes:
    return (PAYLOADS / f"{name}.json").read_bytes()


def load(name: str, schema: Validator) -> Manifest:
    return check_manifest(read_manifest(SAMPLES / f"{name}.yaml"), schema, name)


def rendered(manifest: Manifest, body: bytes) -> tuple[str, dict[str, Any]]:
    payload = parse_payload("application/json", body)
    source = manifest.store.input
    return compile_template(source.text).render(payload), render_metadata(source.metadata, payload)


def test_every_sample_is_tested() -> None:
    assert sorted(path.stem for path in SAMPLES.iterdir()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_sample_is_valid(name: str, schema: Validator) -> None:
    assert load(name, schema).name == name
    assert misspelt_keys(read_manifest(SAMPLES / f"{name}.yaml"), schema) == []


def test_samples_live_side_by_side(schema: Validator) -> None:
    catalog = resolve({f"{name}.yaml": load(name, schema) for name in NAMES}, set())
    assert sorted(catalog.live) == NAMES


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
