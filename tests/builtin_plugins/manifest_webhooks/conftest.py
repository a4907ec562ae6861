"""A valid manifest, the published schema and the samples, for the tests of this folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema.protocols import Validator

from builtin_plugins.manifest_webhooks.schema import compile_schema

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def schema_document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(
        (ROOT / "schemas" / "manifest.v1alpha1.schema.json").read_text(encoding="utf-8")
    )
    return document


@pytest.fixture(scope="session")
def schema(schema_document: dict[str, Any]) -> Validator:
    return compile_schema(schema_document)


@pytest.fixture
def manifest() -> dict[str, Any]:
    return {
        "apiVersion": "platform.dev/v1alpha1",
        "kind": "Plugin",
        "metadata": {"name": "notes", "version": "1.0.0"},
        "spec": {
            "trigger": {"type": "webhook", "webhook": {"path": "/notes"}},
            "action": {
                "type": "store-vector",
                "store": {"collection": "notes", "input": {"text": "{{ .t }}"}},
            },
        },
    }
