"""Which manifests are live."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from builtin_plugins.manifest_webhooks.catalog import resolve
from builtin_plugins.manifest_webhooks.manifest import Manifest
from builtin_plugins.manifest_webhooks.problems import Problem

BROKEN = [Problem("kind", "is not an allowed value", "Write Plugin.")]


@pytest.fixture
def make(manifest: dict[str, Any]) -> Any:
    """Make manifests that differ in name and path."""

    def make_one(name: str, path: str) -> Manifest:
        tree = copy.deepcopy(manifest)
        tree["metadata"]["name"] = name
        tree["spec"]["trigger"]["webhook"]["path"] = path
        return Manifest.model_validate(tree)

    return make_one


@pytest.mark.parametrize(("name", "path"), [("aa", "/m"), ("mm", "/a"), ("mm", "/m")])
def test_a_live_file_claims_what_another_has(make: Any, name: str, path: str) -> None:
    held = resolve({"a.yaml": make("aa", "/a"), "m.yaml": make("mm", "/m")}, set()).holders
    catalog = resolve({"a.yaml": make(name, path), "m.yaml": make("mm", "/m")}, set(), held)
    assert catalog.sources == {"mm": "m.yaml"}
    assert list(catalog.refused) == ["a.yaml"]


def test_what_is_decided_stays_decided(make: Any) -> None:
    files = {
        "a.yaml": make("aa", "/a"),
        "b.yaml": make("aa", "/b"),
        "c.yaml": BROKEN,
        "d.yaml": make("rag", "/d"),
    }
    held = {("name", "cc"): "c.yaml", ("path", "/b"): "gone.yaml", ("path", "/d"): "b.yaml"}
    once = resolve(files, {"rag"}, held)
    assert resolve(files, {"rag"}, once.holders) == once


def test_two_files_that_change_places(make: Any) -> None:
    held = resolve({"a.yaml": make("aa", "/a"), "m.yaml": make("mm", "/m")}, set()).holders
    catalog = resolve({"a.yaml": make("mm", "/a"), "m.yaml": make("aa", "/m")}, set(), held)
    assert catalog.sources == {"mm": "a.yaml", "aa": "m.yaml"}
