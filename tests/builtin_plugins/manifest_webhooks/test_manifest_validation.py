"""Validation: all defects, their paths, remedies and what is never shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from jsonschema.protocols import Validator

from builtin_plugins.manifest_webhooks.loading import load_manifest
from builtin_plugins.manifest_webhooks.problems import ManifestError
from builtin_plugins.manifest_webhooks.validation import check_manifest, misspelt_keys, oddities, validate


def put(manifest: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for key in parents:
        manifest = manifest[key]
    manifest[last] = value


def drop(manifest: dict[str, Any], path: str) -> None:
    *parents, last = path.split(".")
    for key in parents:
        manifest = manifest[key]
    del manifest[last]


def test_valid_manifest(manifest: dict[str, Any], schema: Validator) -> None:
    """A minimal manifest has no problems, and the typed view has the defaults."""
    assert validate(manifest, schema) == []
    view = check_manifest(manifest, schema, "x.yaml")
    assert (view.name, view.webhook.path, view.webhook.method, view.webhook.secret_ref) == (
        "notes",
        "/notes",
        "POST",
        None,
    )
    assert (view.store.collection, view.store.embed_model, view.store.input.metadata) == (
        "notes",
        "all-minilm",
        {},
    )


def test_extra_keys_are_accepted(manifest: dict[str, Any], schema: Validator) -> None:
    for path in (
        "x",
        "metadata.labels",
        "spec.x",
        "spec.trigger.x",
        "spec.trigger.webhook.x",
        "spec.action.store.x",
    ):
        put(manifest, path, {"a": 1})
    assert validate(manifest, schema) == []


REQUIRED = [
    "apiVersion",
    "kind",
    "metadata",
    "spec",
    "metadata.name",
    "metadata.version",
    "spec.trigger",
    "spec.action",
    "spec.trigger.type",
    "spec.trigger.webhook",
    "spec.trigger.webhook.path",
    "spec.action.type",
    "spec.action.store",
    "spec.action.store.collection",
    "spec.action.store.input",
    "spec.action.store.input.text",
]


@pytest.mark.parametrize("path", REQUIRED)
def test_required_keys(manifest: dict[str, Any], schema: Validator, path: str) -> None:
    """A missing key is reported at its parent, by name, with what belongs there."""
    drop(manifest, path)
    parent, _, key = path.rpartition(".")
    (problem,) = validate(manifest, schema)
    assert problem.path == (" -> ".join(parent.split(".")) if parent else "root")
    assert f"'{key}'" in problem.message
    assert key in problem.remedy


WRONG = [
    ("apiVersion", "platform.dev/v1", "platform.dev/v1alpha1"),
    ("kind", "plugin", "Write Plugin."),
    ("metadata.name", "Notes", "lower-case"),
    ("metadata.name", "n", "at least 2"),
    ("metadata.name", "n" * 64, "at most 63"),
    ("metadata.name", "notes\n", "lower-case"),
    ("metadata.version", "1.0", "Three numbers"),
    ("metadata.version", 1.0, "quotes"),
    ("metadata.description", "d" * 501, "at most 500"),
    ("spec.trigger.type", "cron", "Write webhook."),
    ("spec.trigger.webhook.path", "notes", "slash"),
    ("spec.trigger.webhook.path", "/Notes", "lower-case"),
    ("spec.trigger.webhook.path", "/" + "n" * 100, "at most 100"),
    ("spec.trigger.webhook.path", "/", "hyphens and slashes"),
    ("spec.trigger.webhook.method", "GET", "Write POST."),
    ("spec.trigger.webhook.secretRef", "My Secret", "name of a stored secret"),
    ("spec.action.type", "store-vectors", "Write store-vector."),
    ("spec.action.store.collection", "ab", "at least 3"),
    ("spec.action.store.collection", "Notes", "lower-case"),
    ("spec.action.store.embedModel", "nomic-embed", "Did you mean nomic-embed-text?"),
    ("spec.action.store.input.text", "", "text to store"),
    ("spec.action.store.input.text", "  \n", "text to store"),
    ("spec.action.store.input.metadata", ["a"], "an object"),
    ("spec", None, "an object"),
    ("metadata", [], "an object"),
]


@pytest.mark.parametrize(("path", "value", "remedy"), WRONG)
def test_wrong_values(
    manifest: dict[str, Any], schema: Validator, path: str, value: Any, remedy: str
) -> None:
    """A wrong value is reported at its own path, with a remedy for its kind of fault."""
    put(manifest, path, value)
    problems = validate(manifest, schema)
    assert {problem.path for problem in problems} == {" -> ".join(path.split("."))}
    assert any(remedy in problem.remedy for problem in problems)


RIGHT = [
    ("spec.trigger.webhook.path", "/a-b/c-1/"),
    ("spec.trigger.webhook.secretRef", "a.b_c-d"),
    ("spec.action.store.collection", "a-b_c"),
    ("spec.action.store.embedModel", "mxbai-embed-large"),
    ("metadata.version", "10.20.30"),
    ("spec.action.store.input.metadata", {"a": {"b": "{{ .c }}"}, "n": 1, "l": []}),
]


@pytest.mark.parametrize(("path", "value"), RIGHT)
def test_edges_of_the_patterns(manifest: dict[str, Any], schema: Validator, path: str, value: Any) -> None:
    """Hyphens, dots and underscores are allowed exactly where the wire format lists them."""
    put(manifest, path, value)
    assert validate(manifest, schema) == []


def test_all_problems_at_once_in_order(manifest: dict[str, Any], schema: Validator) -> None:
    put(manifest, "kind", "Plug")
    put(manifest, "metadata.name", "")
    drop(manifest, "spec.action.store.input")
    problems = validate(manifest, schema)
    assert [problem.path for problem in problems] == ["kind", "metadata -> name", "spec -> action -> store"]


@pytest.mark.parametrize("wrong", ["apiversion", "api_version", "apiVerison"])
def test_misspelt_required_key(manifest: dict[str, Any], schema: Validator, wrong: str) -> None:
    """A near miss of a required key is named in the remedy."""
    manifest[wrong] = manifest.pop("apiVersion")
    (problem,) = validate(manifest, schema)
    assert "'apiVersion'" in problem.remedy and f"'{wrong}'" in problem.remedy


@pytest.mark.parametrize("wrong", ["secretref", "secret_ref", "secret-ref", "secretRefs"])
def test_misspelt_optional_key_is_a_warning(manifest: dict[str, Any], schema: Validator, wrong: str) -> None:
    put(manifest, f"spec.trigger.webhook.{wrong}", "notes")
    assert validate(manifest, schema) == []
    (warning,) = misspelt_keys(manifest, schema)
    assert warning.path == f"spec -> trigger -> webhook -> {wrong}"
    assert "secretRef" in warning.remedy


@pytest.mark.parametrize(
    ("where", "key", "home"),
    [
        ("spec.trigger", "secretRef", "spec -> trigger -> webhook"),
        ("", "access", "spec"),
        ("spec.action.store", "onMissing", "spec -> action -> store -> input"),
    ],
)
def test_known_key_in_the_wrong_place_is_a_warning(
    manifest: dict[str, Any], schema: Validator, where: str, key: str, home: str
) -> None:
    """A `secretRef` outside `webhook` would leave a webhook open to all; the warning names its place."""
    put(manifest, f"{where}.{key}".lstrip("."), "x")
    (warning,) = misspelt_keys(manifest, schema)
    assert warning.path.endswith(key)
    assert f" {home}." in warning.remedy


def test_path_with_the_prefix_is_a_warning(manifest: dict[str, Any], schema: Validator) -> None:
    put(manifest, "spec.trigger.webhook.path", "/webhook/notes")
    (warning,) = oddities(manifest, check_manifest(manifest, schema, "x.yaml"), schema)
    assert warning.path == "spec -> trigger -> webhook -> path"
    assert "/webhook/webhook/notes" in warning.message
    assert "Write /notes" in warning.remedy


def test_lines_of_a_file(manifest: dict[str, Any], schema: Validator) -> None:
    put(manifest, "spec.trigger.webhook.secretref", "notes")
    text = yaml.safe_dump(manifest, sort_keys=False)
    tree = load_manifest(text.encode(), "x.yaml")
    (warning,) = oddities(tree, check_manifest(tree, schema, "x.yaml"), schema)
    put(manifest, "metadata.name", "Bad Name")
    drop(manifest, "spec.action.store.input")
    text = yaml.safe_dump(manifest, sort_keys=False)
    problems = validate(load_manifest(text.encode(), "x.yaml"), schema)
    lines = text.splitlines()
    found = [lines[problem.line - 1].strip() for problem in (*problems, warning) if problem.line]
    assert found == ["name: Bad Name", "store:", "secretref: notes"]


def test_known_and_strange_keys_are_no_warning(manifest: dict[str, Any], schema: Validator) -> None:
    put(manifest, "annotations", {})
    put(manifest, "spec.action.store.input.metadata", {"texts": "x"})
    assert misspelt_keys(manifest, schema) == []


SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.mark.parametrize(
    "break_it",
    [
        lambda manifest: put(manifest, "spec.trigger.webhook.secretRef", SECRET),
        lambda manifest: put(manifest, "spec.trigger.webhook.path", SECRET),
        lambda manifest: put(manifest, "spec.trigger.webhook.secretRef", {"value": SECRET}),
        lambda manifest: put(manifest, "spec.trigger.webhook", [SECRET]),
        lambda manifest: put(manifest, "metadata.version", SECRET.removeprefix("whsec_")),
        lambda manifest: manifest.update(spec={"password": SECRET}),
    ],
)
def test_secrets_are_not_repeated(
    manifest: dict[str, Any], schema: Validator, break_it: Callable[[dict[str, Any]], None]
) -> None:
    """A secret pasted into a manifest appears in no message, remedy or value."""
    break_it(manifest)
    problems = validate(manifest, schema)
    assert problems
    assert SECRET.removeprefix("whsec_") not in str([problem.as_dict() for problem in problems])


def test_failed_value_is_short(manifest: dict[str, Any], schema: Validator) -> None:
    """The offending value is shown, shortened, so that a huge one cannot fill an answer."""
    put(manifest, "metadata.name", "Bad Name")
    assert validate(manifest, schema)[0].failed_value == "Bad Name"
    put(manifest, "metadata.name", "Bad Name " * 1000)
    shown = [problem.failed_value or "" for problem in validate(manifest, schema)]
    assert max(map(len, shown)) <= 80


def test_check_manifest_raises_all(manifest: dict[str, Any], schema: Validator) -> None:
    """The typed view is only made of a valid manifest; the error names source and defects."""
    put(manifest, "kind", "Plug")
    drop(manifest, "metadata.name")
    with pytest.raises(ManifestError, match=r"x\.yaml.*kind.*metadata") as caught:
        check_manifest(manifest, schema, "x.yaml")
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize(
    "tree", [{}, {"spec": {"trigger": 1, "action": []}}, {"spec": {"action": {"store": {}}}}]
)
def test_any_shape_is_reported_not_raised(schema: Validator, tree: dict[str, Any]) -> None:
    assert validate(tree, schema)
