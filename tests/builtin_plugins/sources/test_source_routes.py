"""Sources over HTTP: adding, changing, credentials, schedules, pushes, and where a document comes from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from builtin_plugins.sources.api import CredentialRefused, SourceMisplaced
from builtin_plugins.sources.filters import SourceFilters, fits
from builtin_plugins.sources.models import RunRecord, SourceRecord
from builtin_plugins.sources.protocol import SourceItem
from kernel.testing import somebody
from tests.builtin_plugins.rag.rag_support import NOWHERE, problems
from tests.builtin_plugins.sources.conftest import Desk

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_kinds_come_with_their_forms_and_refusals(desk: Desk) -> None:
    answer = (await desk.ann.get("/v1/rag/source-kinds")).json()
    kinds = {one["name"]: one for one in answer["items"]}
    assert kinds["scripted"]["secret"] == "Password"
    assert kinds["folder"]["settings_schema"]["properties"]["path"]["title"] == "Folder"
    assert (kinds["secretive"]["guarded"], kinds["scripted"]["guarded"]) == ("always", "never")
    assert set(answer["refused"]) == {"scripted_sources:scripted"}
    body = {"kind": "nothing", "name": "x", "settings": desk.settings}
    refused = await desk.ann.post(f"/v1/rag/knowledge-bases/{desk.base}/sources", json=body)
    assert set(problems(refused)) == {"body.kind"}
    health = (await desk.ann.get("/health")).json()
    assert "scripted_sources:scripted" in str(health)


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ({"kind": "nothing"}, "body.kind"),
        ({"settings": {}}, "body.settings.shelf"),
        ({"settings": {"shelf": "x", "other": 1}}, "body.settings.other"),
        ({"schedule": "every day"}, "body.schedule"),
        ({"schedule": "0 0 30 2 *"}, "body.schedule"),
        ({"schedule": "0 0 * * * *"}, "body.schedule"),
        ({"filters": {"max_size_mb": 0}}, "body.filters.max_size_mb"),
        ({"name": " "}, "body.name"),
    ],
)
async def test_what_is_wrong_is_named(desk: Desk, wrong: dict[str, Any], place: str) -> None:
    body = {"kind": "scripted", "name": "Shelf", "settings": desk.settings, **wrong}
    answer = await desk.ann.post(f"/v1/rag/knowledge-bases/{desk.base}/sources", json=body)
    assert place in problems(answer)


async def test_a_credential_reaches_the_source_and_nobody_else(desk: Desk) -> None:
    desk.shelf.contents = {"a.txt": b"Text."}
    await desk.add(secret="open sesame")
    assert desk.shelf.secrets == ["open sesame"]
    for path in ("", "/runs", "/items"):
        assert b"sesame" not in (await desk.ann.get(desk.path(path))).body
    shown = (await desk.ann.get(desk.path())).json()
    assert shown["has_secret"] is True
    await desk.ann.patch(desk.path(), json={"secret": "another"})
    await desk.run()
    assert desk.shelf.secrets[-1] == "another"


async def test_nobody_leads_the_credential_of_another_account_elsewhere(desk: Desk) -> None:
    """An administrator may change any source, but not have its owner's token sent to another server."""
    desk.shelf.contents = {"a.txt": b"Text."}
    await desk.add(secret="open sesame")
    admin = await somebody(desk.running, role="admin")
    same = {"settings": desk.settings, "name": "Renamed"}
    assert (await admin.patch(desk.path(), json=same)).status == 200
    elsewhere = {"settings": {"shelf": "elsewhere"}}
    assert set(problems(await admin.patch(desk.path(), json=elsewhere))) == {"body.secret"}
    assert (await admin.patch(desk.path(), json={**elsewhere, "secret": "mine"})).status == 200
    assert set(problems(await desk.ann.patch(desk.path(), json=same))) == {"body.secret"}


@pytest.mark.parametrize("secret", ["open sesame", None])
async def test_nobody_says_who_may_read_what_another_account_brought(desk: Desk, secret: str | None) -> None:
    """Nor with a credential of their own: their server would give them its documents. Nor if there is no
    credential, or none any more.
    """
    await desk.add(kind="secretive", secret=secret)
    admin = await somebody(desk.running, role="admin")
    for change in ({"settings": {"shelf": "elsewhere"}, "secret": "mine"}, {"secret": "mine"}):
        assert set(problems(await admin.patch(desk.path(), json=change))) == {"body.secret"}
    assert (await admin.patch(desk.path(), json={"name": "Renamed"})).status == 200
    assert (await desk.ann.patch(desk.path(), json={"secret": "another"})).status == 200


async def test_settings_are_tried_before_they_are_saved(desk: Desk) -> None:
    desk.shelf.contents = {f"{at}.txt": b"x" for at in range(30)}
    path = f"/v1/rag/knowledge-bases/{desk.base}/sources/test"
    body = {"kind": "scripted", "settings": desk.settings, "secret": "tried"}
    tested = (await desk.ann.post(path, json=body)).json()
    assert (tested["ok"], len(tested["items"]), desk.shelf.secrets) == (True, 10, ["tried"])

    def refused(_: int) -> None:
        raise CredentialRefused("The password is wrong")

    desk.shelf.listing = refused
    tested = (await desk.ann.post(path, json=body)).json()
    assert (tested["ok"], tested["problem"]) == (False, "The password is wrong")
    listed = await desk.ann.get(f"/v1/rag/knowledge-bases/{desk.base}/sources")
    assert listed.json()["items"] == []


async def test_the_sample_says_what_filters_leave_out(desk: Desk) -> None:
    desk.shelf.contents = {"a.txt": b"x", "b.log": b"x"}
    path = f"/v1/rag/knowledge-bases/{desk.base}/sources/test"
    body = {"kind": "scripted", "settings": desk.settings, "filters": {"exclude": ["*.log"]}}
    tested = (await desk.ann.post(path, json=body)).json()
    assert {one["path"]: one["skipped"] for one in tested["items"]} == {
        "a.txt": None,
        "b.log": "filter: its path is excluded",
    }


async def test_new_settings_are_tried_with_the_credential_that_is_stored(desk: Desk) -> None:
    """But not by another account, nor for another kind of source."""
    desk.shelf.contents = {"a.txt": b"x"}
    await desk.add(secret="stored")
    path = f"/v1/rag/knowledge-bases/{desk.base}/sources/test"
    body = {"kind": "scripted", "settings": desk.settings, "source_id": desk.source}
    assert (await desk.ann.post(path, json=body)).json()["ok"] is True
    assert (await desk.ann.post(path, json={**body, "secret": "new"})).json()["ok"] is True
    assert desk.shelf.secrets[-2:] == ["stored", "new"]
    admin, elsewhere = await somebody(desk.running, role="admin"), {"settings": {"shelf": "elsewhere"}}
    assert (await admin.post(path, json=body)).status == 200
    assert set(problems(await admin.post(path, json={**body, **elsewhere}))) == {"body.secret"}
    other = await desk.ann.post(path, json={**body, "kind": "secretive"})
    assert other.json()["code"] == "source_not_found"
    missing = await desk.ann.post(path, json={**body, "source_id": NOWHERE})
    assert missing.json()["code"] == "source_not_found"


async def test_only_owners_see_sources_and_readers_see_origins(desk: Desk) -> None:
    """A reader of the knowledge base sees where a document comes from, and nothing else."""
    desk.shelf.contents = {"list/a.txt": b"Text."}
    await desk.add()
    reader = await somebody(desk.running)
    [document] = (await desk.ann.get(f"/v1/rag/knowledge-bases/{desk.base}/documents")).json()["items"]
    origin = f"/v1/rag/knowledge-bases/{desk.base}/documents/{document['document_id']}/origin"
    assert (await reader.get(desk.path())).json()["code"] == "source_not_found"
    assert (await reader.get(origin)).json()["code"] == "knowledge_base_not_found"
    answer = await desk.ann.patch(f"/v1/rag/knowledge-bases/{desk.base}", json={"visibility": "shared"})
    assert answer.status == 200, answer.body
    assert (await reader.get(desk.path())).json()["code"] == "not_owner"
    assert (await reader.post(desk.path("/run"), json={})).json()["code"] == "not_owner"
    found = (await reader.get(origin)).json()
    assert (found["path"], found["link"], found["details"]) == (
        "list/a.txt",
        "https://shelf.example.org/list/a.txt",
        {"shelf": "first"},
    )
    missing = f"/v1/rag/knowledge-bases/{desk.base}/documents/{NOWHERE}/origin"
    assert (await reader.get(missing)).json()["code"] == "origin_not_found"


async def test_a_push_triggers_a_run(desk: Desk) -> None:
    """By the newest address; one that comes while a run is under way is followed by another run."""
    desk.shelf.contents = {"a.txt": b"Text."}
    await desk.add()
    first, second = [(await desk.ann.post(desk.path("/push-address"))).json()["path"] for _ in range(2)]
    anonymous = desk.running.anonymous
    assert (await anonymous.post(first)).json()["code"] == "push_not_found"
    desk.shelf.contents["b.txt"] = b"More."
    assert (await anonymous.post(second, json={"ref": "refs/heads/main"})).status == 202
    assert (await anonymous.post(second)).status == 202
    await desk.running.run_jobs()
    runs = (await desk.ann.get(desk.path("/runs"))).json()["items"]
    assert [one["trigger"] for one in runs] == ["push", "push", "hand"]
    assert set(await desk.documents()) == {"a.txt", "b.txt"}


async def test_a_push_follows_a_run_that_fails(desk: Desk) -> None:
    desk.shelf.contents = {"a.txt": b"Text."}
    await desk.add()
    path = (await desk.ann.post(desk.path("/push-address"))).json()["path"]
    desk.shelf.contents["b.txt"] = b"More."
    faults = [SourceMisplaced("The disk is away")]

    def away(_: int) -> None:
        if faults:
            raise faults.pop()

    desk.shelf.listing = away
    for _ in range(2):
        assert (await desk.running.anonymous.post(path)).status == 202
    await desk.running.run_jobs()
    assert set(await desk.documents()) == {"a.txt", "b.txt"}


async def test_the_clock_begins_runs_and_ends_pauses(desk: Desk) -> None:
    desk.shelf.contents = {"a.txt": b"Text."}
    await desk.add(schedule="@hourly")
    database = desk.running.platform.database
    assert (await desk.ann.get(desk.path())).json()["next_at"] is not None
    past = datetime.now(UTC) - timedelta(minutes=1)
    due = update(SourceRecord).where(SourceRecord.id == desk.source).values(next_at=past)
    await database.write(lambda unit: unit.session.execute(due) and None)
    await desk.tick()
    runs = (await desk.ann.get(desk.path("/runs"))).json()["items"]
    assert "schedule" in {one["trigger"] for one in runs}  # a watch that begins may add a run by push
    shown = (await desk.ann.get(desk.path())).json()
    assert datetime.fromisoformat(shown["next_at"]) > datetime.now(UTC)
    paused = (
        update(RunRecord)
        .where(RunRecord.source_id == desk.source, RunRecord.trigger == "schedule")
        .values(state="waiting", resume_at=past, phase="listing")
    )
    await database.write(lambda unit: unit.session.execute(paused) and None)
    await desk.tick()
    assert (await desk.last_run())["state"] == "done"


async def test_a_knowledge_base_takes_its_sources_along(desk: Desk) -> None:
    desk.shelf.contents = {"a.txt": b"Text."}
    await desk.add(secret="x")
    answer = await desk.ann.delete(f"/v1/rag/knowledge-bases/{desk.base}")
    assert {"place": "sources", "count": 1, "pending": False} in answer.json()["receipt"]["removed"]
    assert (await desk.ann.get(desk.path())).status == 404


async def test_a_folder_from_end_to_end(desk: Desk, open_folder: Path) -> None:
    folder = open_folder / desk.base
    folder.mkdir()
    (folder / "a.md").write_text("# Title\n\nText.")
    run = await desk.add(kind="folder", settings={"path": str(folder)})
    assert (run["state"], run["added"]) == ("done", 1)
    (folder / "a.md").rename(folder / "b.md")
    run = await desk.run()
    assert (run["moved"], run["fetched_bytes"]) == (1, 0)
    assert set(await desk.documents()) == {"b.md"}
    await desk.ann.patch(desk.path(), json={"settings": {"path": "/etc"}})
    run = await desk.run()
    assert (run["state"], set(await desk.documents())) == ("failed", {"b.md"})


async def test_a_path_that_no_disk_takes_is_a_problem_of_the_source(desk: Desk, open_folder: Path) -> None:
    (open_folder / "circle").symlink_to(open_folder / "circle")
    path = f"/v1/rag/knowledge-bases/{desk.base}/sources/test"
    for name in ("x" * 300, "circle", "nothing"):
        body = {"kind": "folder", "settings": {"path": str(open_folder / name)}}
        answer = await desk.ann.post(path, json=body)
        assert (answer.status, answer.json()["ok"]) == (200, False)


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("a/b/c.md", "*.md", True),
        ("a/b/c.MD", "*.md", True),
        ("a/b/c.md", "a/*.md", False),
        ("a/b/c.md", "a/**", True),
        ("a/b/c.md", "a/**/c.md", True),
        ("a/c.md", "a/**/c.md", True),
        ("a/b/c.md", "**/c.?d", True),
        ("ab/c.md", "a/**", False),
        ("a+b.md", "a+b.*", True),
        ("a[1].md", "a[1].md", True),
        ("a/b", "a*b", False),
        ("a/b/c.md", "a/**c.md", True),
        ("a/" * 400 + "a", "**/" * 80 + "b", False),  # no pattern keeps a run busy
        ("a" * 250, "*a" * 120 + "b", False),
    ],
)
async def test_patterns(path: str, pattern: str, *, expected: bool) -> None:
    assert fits(path, pattern) is expected


@pytest.mark.parametrize(
    ("filters", "taken"),
    [
        ({"max_size_mb": 1}, {"small.txt", "future.pdf", "old.txt"}),
        ({"media_types": ["text/*"]}, {"small.txt", "old.txt", "large.txt"}),
        ({"max_age_days": 30}, {"small.txt", "future.pdf", "large.txt"}),
        ({"include": ["*.txt"], "exclude": ["old*"]}, {"small.txt", "large.txt"}),
    ],
)
async def test_filters(filters: dict[str, Any], taken: set[str]) -> None:
    """A date in the future, as of a wrong clock, is no age."""
    now = datetime.now(UTC)
    items = [
        SourceItem("1", "1", "small.txt", 10, now),
        SourceItem("2", "2", "future.pdf", 10, now + timedelta(days=900)),
        SourceItem("3", "3", "old.txt", 10, now - timedelta(days=900)),
        SourceItem("4", "4", "large.txt", 9_000_000, None),
    ]
    checked = SourceFilters.model_validate(filters)
    assert {one.path for one in items if checked.refusal(one, now) is None} == taken
