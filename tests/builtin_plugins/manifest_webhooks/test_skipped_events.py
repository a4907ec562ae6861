"""Which deliveries a manifest wants, and what a missing value means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema.protocols import Validator

from builtin_plugins.manifest_webhooks.validation import validate
from builtin_plugins.vectors.api import VECTORS
from kernel.testing import Reply, Start
from tests.builtin_plugins.manifest_webhooks.webhook_support import drop, manifest, send
from tests.fakes.hash_embeddings import HashEmbeddings

ISSUES = [{"X-GitHub-Event": "issues"}, {"X-Kind": "note", "X-Version": "2"}]


async def answer_to(
    start_platform: Start, home: Path, headers: dict[str, str], payload: Any = None, **changes: Any
) -> Reply:
    drop(home / "manifests", "a.yaml", manifest(**changes))
    running = await start_platform("manifest_webhooks", HashEmbeddings())
    reply = await send(running.anonymous, "/notes", payload or {"text": "x"}, headers)
    stored = await running.platform.resource(VECTORS).count("manifest:notes:notes")
    assert stored == ("result" in reply.json())
    return reply


@pytest.mark.parametrize(
    "headers",
    [
        {"X-GitHub-Event": "issues"},
        {"x-github-event": "issues"},
        {"X-Kind": "note", "X-Version": "2"},
        {"X-Kind": "other", "X-GitHub-Event": "issues"},
    ],
)
async def test_wanted(start_platform: Start, platform_home: Path, headers: dict[str, str]) -> None:
    """One item fits: the delivery is stored. Names of headers are read in any case."""
    answer = await answer_to(start_platform, platform_home, headers, events=ISSUES)
    assert answer.status == 200 and answer.json()["message"] == "Stored"


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({}, "X-GitHub-Event: (not sent)"),
        ({"X-GitHub-Event": "push"}, "X-GitHub-Event: push"),
        ({"X-GitHub-Event": "Issues"}, "X-GitHub-Event: Issues"),
        ({"X-Kind": "note", "X-Version": "3"}, "X-Kind: note, X-Version: 3"),
        ({"X-Kind": "note"}, "X-Version: (not sent)"),
        ({"X-GitHub-Event": "ping"}, "GitHub's ping"),
    ],
)
async def test_unwanted(
    start_platform: Start, platform_home: Path, headers: dict[str, str], why: str
) -> None:
    """No item fits: 200, and why nothing was stored."""
    answer = await answer_to(start_platform, platform_home, headers, events=ISSUES)
    assert answer.status == 200 and set(answer.json()) == {"message", "plugin", "skipped"}
    assert why in answer.json()["skipped"]


@pytest.mark.parametrize(
    ("events", "stored"), [(None, False), (ISSUES, False), ([{"X-GitHub-Event": "ping"}], True)]
)
async def test_ping(start_platform: Start, platform_home: Path, events: Any, stored: bool) -> None:
    """GitHub's ping is acknowledged, whatever else is wanted; a manifest may ask for it."""
    changes = {} if events is None else {"events": events}
    answer = await answer_to(start_platform, platform_home, {"X-GitHub-Event": "ping"}, **changes)
    assert answer.status == 200 and ("result" in answer.json()) is stored


MISSING = [
    ({"issue": {}}, "missing"),
    ({"issue": {"title": None}}, "null"),
    ({"issue": "x"}, "not an object"),
]


@pytest.mark.parametrize(("payload", "why"), [*MISSING, ({"issue": {"title": " "}}, "empty")])
async def test_skip_missing(start_platform: Start, platform_home: Path, payload: Any, why: str) -> None:
    """With `onMissing: skip` what lacks a value is acknowledged, and the reason names the value."""
    changes = {"text": "{{ .issue.title }}", "on_missing": "skip"}
    answer = await answer_to(start_platform, platform_home, {}, payload, **changes)
    assert answer.status == 200 and why in answer.json()["skipped"]
    assert why == "empty" or ".issue" in answer.json()["skipped"]


@pytest.mark.parametrize("changes", [{}, {"on_missing": "error"}])
async def test_refuse_missing(start_platform: Start, platform_home: Path, changes: dict[str, str]) -> None:
    answer = await answer_to(
        start_platform, platform_home, {}, {"issue": {}}, text="{{ .issue.title }}", **changes
    )
    assert answer.status == 422 and answer.detail[0]["loc"] == ["body", "issue", "title"]


async def test_unstorable_is_never_skipped(start_platform: Start, platform_home: Path) -> None:
    answer = await answer_to(start_platform, platform_home, {}, {"text": "a\x00b"}, on_missing="skip")
    assert answer.status == 422 and "NUL" in answer.detail[0]["msg"]


@pytest.mark.parametrize(
    ("events", "path"),
    [
        ([], "events"),
        ("issues", "events"),
        (["issues"], "events -> 0"),
        ([{}], "events -> 0"),
        ([{"X-GitHub-Event": ["issues"]}], "events -> 0 -> X-GitHub-Event"),
        ([{"X-Version": 2}], "events -> 0 -> X-Version"),
        ([{"X GitHub": "issues"}], "events -> 0"),
    ],
)
def test_wrong_events(schema: Validator, events: Any, path: str) -> None:
    """What is not a list of headers and their values is named, with a remedy."""
    problems = validate(manifest(events=events), schema)
    assert [problem.path for problem in problems] == [f"spec -> trigger -> webhook -> {path}"]
    assert problems[0].remedy


def test_wrong_choice(schema: Validator) -> None:
    """A misspelt choice gets the nearest one."""
    problems = validate(manifest(on_missing="skipp", search="Public"), schema)
    assert {problem.path.rpartition(" ")[2] for problem in problems} == {"onMissing", "search"}
    assert " skip" in problems[1].remedy
