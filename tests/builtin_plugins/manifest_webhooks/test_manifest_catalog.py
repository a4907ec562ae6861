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

    def made(name: str, path: str) -> Manifest:
        tree = copy.deepcopy(manifest)
        tree["metadata"]["name"] = name
        tree["spec"]["trigger"]["webhook"]["path"] = path
        return Manifest.model_validate(tree)

    return made


def test_different_manifests_are_live(make: Any) -> None:
    """Names and paths of their own: all live, each with its file."""
    catalog = resolve({"b.yaml": make("bb", "/b"), "a.yaml": make("aa", "/a")}, set())
    assert catalog.sources == {"aa": "a.yaml", "bb": "b.yaml"}
    assert catalog.live["bb"].webhook.path == "/b"
    assert catalog.refused == {}


@pytest.mark.parametrize("order", [("a.yaml", "b.yaml"), ("b.yaml", "a.yaml")])
@pytest.mark.parametrize(("name", "path", "what"), [("aa", "/b", "name aa"), ("bb", "/a", "path /a")])
def test_later_file_is_refused(make: Any, order: tuple[str, str], name: str, path: str, what: str) -> None:
    """Of two files with one name or path the later by name is refused, naming both, in any order."""
    made = {"a.yaml": make("aa", "/a"), "b.yaml": make(name, path)}
    catalog = resolve({source: made[source] for source in order}, set())
    assert list(catalog.live) == ["aa"]
    reason = catalog.refused["b.yaml"]
    assert "a.yaml" in reason and "b.yaml" in reason and what in reason


@pytest.mark.parametrize(("name", "path"), [("bb", "/a"), ("aa", "/b"), ("bb", "/b")])
def test_what_is_live_stays(make: Any, name: str, path: str) -> None:
    """A file that sorts before the live one takes neither its name nor its path."""
    held = resolve({"m.yaml": make("bb", "/b")}, set()).holders
    catalog = resolve({"a.yaml": make(name, path), "m.yaml": make("bb", "/b")}, set(), held)
    assert catalog.sources == {"bb": "m.yaml"}
    assert "m.yaml, which is live" in catalog.refused["a.yaml"]
    assert resolve({"a.yaml": make(name, path)}, set(), catalog.holders).sources == {name: "a.yaml"}


@pytest.mark.parametrize(("name", "path"), [("aa", "/m"), ("mm", "/a"), ("mm", "/m")])
def test_a_live_file_claims_what_another_has(make: Any, name: str, path: str) -> None:
    """A live file that is edited loses its place rather than taking that of another."""
    held = resolve({"a.yaml": make("aa", "/a"), "m.yaml": make("mm", "/m")}, set()).holders
    catalog = resolve({"a.yaml": make(name, path), "m.yaml": make("mm", "/m")}, set(), held)
    assert catalog.sources == {"mm": "m.yaml"}
    assert list(catalog.refused) == ["a.yaml"]


def test_name_of_a_code_plugin(make: Any) -> None:
    """A plugin made of code keeps its name; the file reserves nothing, so its path stays free."""
    catalog = resolve({"a.yaml": make("rag", "/a"), "b.yaml": make("bb", "/a")}, {"rag"})
    assert list(catalog.live) == ["bb"]
    assert "rag" in catalog.refused["a.yaml"]


def test_broken_file_harms_no_other(make: Any) -> None:
    """A file with problems is refused with them; the rest is live."""
    catalog = resolve({"a.yaml": BROKEN, "b.yaml": make("bb", "/b"), "c.yaml": []}, set())
    assert list(catalog.live) == ["bb"]
    assert "Write Plugin." in catalog.refused["a.yaml"]
    assert catalog.refused["c.yaml"]


def test_what_is_decided_stays_decided(make: Any) -> None:
    """Deciding again by what was decided changes nothing, or processes would never agree."""
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
    """Names and paths that two files exchange at once are free for both."""
    held = resolve({"a.yaml": make("aa", "/a"), "m.yaml": make("mm", "/m")}, set()).holders
    catalog = resolve({"a.yaml": make("mm", "/a"), "m.yaml": make("aa", "/m")}, set(), held)
    assert catalog.sources == {"mm": "a.yaml", "aa": "m.yaml"}
