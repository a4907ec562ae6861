"""A knowledge base keeps in step with a source, whatever happens to either."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from builtin_plugins.sources.api import (
    CredentialRefused,
    ItemFault,
    SourceMisplaced,
    SourceThrottled,
    SourceUnreachable,
)
from builtin_plugins.sources.models import ItemRecord, RunRecord, SourceRecord
from kernel.sdk import utc_now
from kernel.testing import audited
from tests.builtin_plugins.rag.rag_support import upload
from tests.builtin_plugins.sources.conftest import Desk

pytestmark = pytest.mark.asyncio(loop_scope="session")

FIGURES = ("found", "added", "changed", "moved", "gone", "skipped", "failed")


def figures(run: dict[str, Any]) -> dict[str, int]:
    return {name: run[name] for name in FIGURES if run[name]}


def texts(number: int) -> dict[str, bytes]:
    return {f"list/{at}.txt": f"Item {at} weighs {at * 7} grams.".encode() for at in range(number)}


async def test_what_changes_is_fetched_and_nothing_else(desk: Desk) -> None:
    desk.shelf.contents = texts(3)
    assert figures(await desk.add()) == {"found": 3, "added": 3}
    desk.shelf.fetched.clear()
    again = await desk.run()
    assert (figures(again), again["fetched_bytes"], desk.shelf.fetched) == ({"found": 3}, 0, [])
    desk.shelf.contents["list/1.txt"] = b"Item 1 is lighter."
    desk.shelf.contents["new.txt"] = b"Something new."
    assert figures(await desk.run()) == {"found": 4, "added": 1, "changed": 1}
    assert sorted(desk.shelf.fetched) == ["list/1.txt", "new.txt"]
    assert await desk.documents() == {
        path.rpartition("/")[2]: content.decode() for path, content in desk.shelf.contents.items()
    }


async def test_what_is_gone_goes_with_a_receipt(desk: Desk) -> None:
    desk.shelf.contents = texts(3)
    await desk.add()
    answer = await desk.ann.get(f"/v1/rag/knowledge-bases/{desk.base}/documents")
    ids = {one["filename"]: one["document_id"] for one in answer.json()["items"]}
    del desk.shelf.contents["list/1.txt"]
    assert figures(await desk.run()) == {"found": 2, "gone": 1}
    assert set(await desk.documents()) == {"0.txt", "2.txt"}
    [entry] = await audited(desk.running, "rag.document.receipt", ids["1.txt"])
    assert entry.after_state["receipt"]["deleted_by"] == "service:sources"


@pytest.mark.parametrize("fingerprints", [True, False])
async def test_a_renamed_item_keeps_its_document(desk: Desk, *, fingerprints: bool) -> None:
    """By its identity where that is stable, else by its content."""
    desk.shelf.contents = texts(2)
    desk.shelf.fingerprints = fingerprints
    if not fingerprints:
        desk.shelf.identities = {"list/0.txt": "0", "moved/zero.txt": "0"}
    await desk.add()
    before = await _ids(desk)
    desk.shelf.contents["moved/zero.txt"] = desk.shelf.contents.pop("list/0.txt")
    desk.shelf.fetched.clear()
    assert figures(await desk.run()) == {"found": 2, "moved": 1}
    after = await _ids(desk)
    assert (after["zero.txt"], desk.shelf.fetched) == (before["0.txt"], [])


async def test_of_many_with_the_same_content_each_takes_one_document_along(desk: Desk) -> None:
    database = desk.running.platform.database
    desk.shelf.contents = {f"old/{at}.txt": b"The same licence." for at in range(3)}
    await desk.add()
    before = await database.read(_documents_of, desk.source)
    desk.shelf.contents = {f"new/{at}.txt": b"The same licence." for at in range(4)}
    assert figures(await desk.run()) == {"found": 4, "moved": 3, "added": 1}
    after = await database.read(_documents_of, desk.source)
    assert (len(after), before - after) == (4, set())


def _documents_of(session: Session, source: str) -> set[str | None]:
    return set(session.scalars(select(ItemRecord.document_id).where(ItemRecord.source_id == source)))


async def _ids(desk: Desk) -> dict[str, str]:
    answer = await desk.ann.get(f"/v1/rag/knowledge-bases/{desk.base}/documents")
    return {one["filename"]: one["document_id"] for one in answer.json()["items"]}


async def test_fields_say_what_the_source_knows(desk: Desk) -> None:
    """Also after a move; only the fields that the knowledge base has."""
    fields = f"/v1/rag/knowledge-bases/{desk.base}/fields"
    for name in ("source_path", "shelf"):
        assert (await desk.ann.put(f"{fields}/{name}", json={"kind": "text"})).status < 300
    desk.shelf.contents = texts(1)
    await desk.add()
    for path in ("list/0.txt", "moved/0.txt"):
        [document] = (await _ids(desk)).values()
        where = f"/v1/rag/knowledge-bases/{desk.base}/documents/{document}/metadata"
        assert (await desk.ann.get(where)).json()["metadata"] == {"source_path": path, "shelf": "first"}
        desk.shelf.contents = {"moved/0.txt": texts(1)["list/0.txt"]}
        await desk.run()


async def test_signs_that_no_database_takes_are_replaced(desk: Desk) -> None:
    desk.shelf.contents = {"a\0b.txt": b"Text.", "c\ud800.txt": b"More.", "d.txt": b"Fine."}
    assert (await desk.add())["state"] == "done"
    assert len(await desk.items()) == 3


async def test_uploads_are_never_touched(desk: Desk) -> None:
    """Even of the same name and bytes as a source's item."""
    content = b"Item 0 weighs 0 grams."
    uploaded = (await upload(desk.ann, desk.base, "0.txt", content)).json()["document_id"]
    await desk.running.run_jobs()
    desk.shelf.contents = {"list/0.txt": content, "list/1.txt": b"Another."}
    await desk.add()
    second = await upload(desk.ann, desk.base, "1.txt", b"Another.")
    assert second.status == 202
    await desk.running.run_jobs()
    desk.shelf.contents = {}
    assert (await desk.run())["state"] == "needs_confirmation"
    await desk.ann.post(desk.path("/confirm"))
    await desk.running.run_jobs()
    assert (await desk.last_run())["state"] == "done"
    kept = await desk.ann.get(f"/v1/rag/knowledge-bases/{desk.base}/documents")
    assert [one["document_id"] for one in kept.json()["items"]] == [uploaded, second.json()["document_id"]]


@pytest.mark.parametrize("cut", [0, 1, 9])
async def test_a_listing_that_is_cut_off_deletes_nothing(desk: Desk, cut: int) -> None:
    desk.shelf.contents = texts(10)
    await desk.add()
    desk.shelf.cut = cut
    run = await desk.run()
    assert (run["state"], run["gone"]) == ("failed", 0)
    assert len(await desk.documents()) == 10
    assert (await desk.ann.get(desk.path())).json()["problem"]
    desk.shelf.cut = None
    assert (await desk.run())["state"] == "done"
    assert (await desk.ann.get(desk.path())).json()["problem"] is None


async def test_much_that_is_missing_waits_for_a_person(desk: Desk) -> None:
    desk.shelf.contents = texts(20)
    await desk.add()
    everything, desk.shelf.contents = desk.shelf.contents, dict(list(texts(20).items())[:8])
    run = await desk.run()
    assert (run["state"], run["gone"]) == ("needs_confirmation", 12)
    assert (await desk.run(dry=True))["gone"] == 12
    assert (await desk.ann.get(desk.path())).json()["missing"] == 12
    assert len(await desk.documents()) == 20
    desk.shelf.contents = dict(list(everything.items())[:3])  # even more is missing by now
    assert (await desk.ann.post(desk.path("/confirm"))).status == 202
    await desk.running.run_jobs()
    assert (await desk.last_run())["state"] == "needs_confirmation"
    assert (await desk.ann.post(desk.path("/confirm"))).status == 202
    await desk.running.run_jobs()
    done = await desk.last_run()
    assert (done["state"], done["gone"], len(await desk.documents())) == ("done", 17, 3)
    assert (await desk.ann.post(desk.path("/confirm"))).json()["code"] == "nothing_to_confirm"


async def test_a_source_that_is_empty_waits_for_a_person_however_small_it_was(desk: Desk) -> None:
    desk.shelf.contents = texts(2)
    await desk.add()
    desk.shelf.contents = {}
    run = await desk.run()
    assert (run["state"], run["gone"], len(await desk.documents())) == ("needs_confirmation", 2, 2)


async def test_a_source_that_recovers_needs_no_confirmation(desk: Desk) -> None:
    desk.shelf.contents = texts(20)
    await desk.add()
    desk.shelf.contents = {}
    assert (await desk.run())["state"] == "needs_confirmation"
    desk.shelf.contents = texts(20)
    assert (await desk.run())["state"] == "done"
    assert len(await desk.documents()) == 20
    states = [one["state"] for one in (await desk.ann.get(desk.path("/runs"))).json()["items"]]
    assert states == ["done", "superseded", "done"]


async def test_an_item_on_two_pages_is_one(desk: Desk) -> None:
    desk.shelf.contents = texts(3)
    desk.shelf.pages = ["list/0.txt", "list/2.txt"]
    assert figures(await desk.add()) == {"found": 3, "added": 3}
    assert len(await desk.documents()) == 3


async def test_a_throttled_run_goes_on(desk: Desk) -> None:
    """While listing and while fetching; what was fetched is not fetched again."""
    desk.shelf.contents = texts(6)
    throttles = [3, 5]

    def throttle(number: int) -> None:
        if throttles and number == throttles[0]:
            throttles.pop(0)
            raise SourceThrottled(0)

    desk.shelf.listing = throttle
    opened: list[str] = []

    def busy(path: str) -> None:
        opened.append(path)
        if len(opened) == 4:
            raise SourceThrottled(0)

    desk.shelf.opening = busy
    run = await desk.add()
    assert (run["state"], figures(run)) == ("done", {"found": 6, "added": 6})
    assert len(await desk.documents()) == 6


async def test_a_long_pause_gives_the_place_back(desk: Desk) -> None:
    desk.shelf.contents = texts(2)

    def throttle(_: int) -> None:
        raise SourceThrottled(3600)

    desk.shelf.listing = throttle
    run = await desk.add()
    assert (run["state"], run["resume_at"] is not None) == ("waiting", True)


@pytest.mark.parametrize(
    ("fault", "state"),
    [
        (CredentialRefused("The token has expired"), "credential_refused"),
        (SourceMisplaced("There is no such shelf"), "failed"),
        (SourceUnreachable("shelf.example.org does not answer"), "failed"),
    ],
)
async def test_a_fault_of_the_source_is_told(desk: Desk, fault: Exception, state: str) -> None:
    desk.shelf.contents = texts(2)
    await desk.add()

    def broken(_: int) -> None:
        raise fault

    desk.shelf.listing = broken
    run = await desk.run()
    assert run["state"] == state
    assert str(fault) in run["error"]
    assert len(await desk.documents()) == 2


async def test_what_is_skipped_says_why_and_is_not_fetched_again(desk: Desk) -> None:
    desk.shelf.contents = {
        "good.txt": b"All is well.",
        "empty.txt": b"",
        "program.exe": b"MZ\x00\x01\x02" * 100,
        "private/key.txt": b"Not for everybody.",
        "broken.txt": b"Never arrives.",
    }

    def broken(path: str) -> None:
        if path == "broken.txt":
            raise ItemFault("The disk has a fault")

    desk.shelf.opening = broken
    run = await desk.add(filters={"exclude": ["private/**"]})
    assert figures(run) == {"found": 5, "added": 1, "skipped": 3, "failed": 1}
    items = await desk.items()
    assert {path: state for path, (state, _) in items.items()} == {
        "good.txt": "stored",
        "empty.txt": "skipped",
        "program.exe": "skipped",
        "private/key.txt": "skipped",
        "broken.txt": "failed",
    }
    assert all(reason for state, reason in items.values() if state != "stored")
    desk.shelf.fetched.clear()
    desk.shelf.opening = lambda _: None
    await desk.run()
    assert desk.shelf.fetched == ["broken.txt"]


async def test_what_becomes_unreadable_goes(desk: Desk) -> None:
    """The knowledge base never answers from what the source no longer says."""
    desk.shelf.contents = {"a.txt": b"The old text.", "b.txt": b"Stays."}
    await desk.add()
    desk.shelf.contents["a.txt"] = b""
    await desk.run()
    assert set(await desk.documents()) == {"b.txt"}


async def test_new_filters_take_documents_out_and_back(desk: Desk) -> None:
    desk.shelf.contents = texts(4) | {"other.md": b"# Other\n\nText."}
    await desk.add()
    for filters, left in (({"include": ["*.md"]}, 1), ({}, 5)):
        answer = await desk.ann.patch(desk.path(), json={"filters": filters})
        assert answer.status == 200, answer.body
        await desk.run()
        assert len(await desk.documents()) == left


async def test_filters_that_change_during_a_run_apply_to_the_next(desk: Desk) -> None:
    """Although nothing has changed at the source since the listing of that run."""
    desk.shelf.contents, desk.shelf.cursor = texts(3), "1"
    changes = []

    def busy(_: str) -> None:
        if not changes:
            raise SourceThrottled(3600)

    desk.shelf.opening = busy
    assert (await desk.add())["state"] == "waiting"
    changes.append(await desk.ann.patch(desk.path(), json={"filters": {"exclude": ["0.txt"]}}))
    due = update(RunRecord).where(RunRecord.source_id == desk.source).values(resume_at=utc_now())
    await desk.running.platform.database.write(lambda unit: unit.session.execute(due) and None)
    await desk.tick()
    assert (await desk.last_run())["state"] == "done"
    await desk.run()
    assert set(await desk.documents()) == {"1.txt", "2.txt"}


async def test_a_dry_run_changes_nothing(desk: Desk) -> None:
    desk.shelf.contents = texts(4)
    await desk.add()
    desk.shelf.contents["list/0.txt"] = b"Changed."
    desk.shelf.contents["x/1.txt"] = desk.shelf.contents.pop("list/1.txt")
    del desk.shelf.contents["list/2.txt"]
    desk.shelf.contents["new.txt"] = b"New."
    before = await desk.documents()
    run = await desk.run(dry=True)
    assert figures(run) == {"found": 4, "added": 1, "changed": 1, "moved": 1, "gone": 1}
    assert run["plan"] == {
        "added": ["new.txt"],
        "changed": ["list/0.txt"],
        "moved": ["x/1.txt"],
        "gone": ["list/2.txt"],
        "skipped": [],
    }
    assert await desk.documents() == before
    assert (await desk.ann.get(desk.path())).json()["last_run"]["is_dry"] is False
    assert figures(await desk.run()) == figures(run)


async def test_a_document_deleted_here_stays_away_until_it_changes(desk: Desk) -> None:
    desk.shelf.contents = texts(2)
    await desk.add()
    one = (await _ids(desk))["0.txt"]
    answer = await desk.ann.delete(f"/v1/rag/knowledge-bases/{desk.base}/documents/{one}")
    assert answer.status == 200
    await desk.run()
    assert ((await desk.items())["list/0.txt"][0], set(await desk.documents())) == (
        "deleted_here",
        {"1.txt"},
    )
    desk.shelf.contents["list/0.txt"] = b"It says something else."
    await desk.run()
    assert set(await desk.documents()) == {"0.txt", "1.txt"}


@pytest.mark.parametrize(("documents", "left"), [("keep", 2), ("delete", 0)])
@pytest.mark.parametrize("noted", [True, False])
async def test_removing_a_source_keeps_or_deletes_its_documents(
    desk: Desk, documents: str, left: int, *, noted: bool
) -> None:
    """Also those that a killed run has stored without noting it."""
    desk.shelf.contents = texts(2)
    await desk.add()
    if not noted:
        killed = update(ItemRecord).where(ItemRecord.source_id == desk.source)
        values = {"document_id": None, "etag": None, "state": "waiting"}
        database = desk.running.platform.database
        await database.write(lambda unit: unit.session.execute(killed.values(values)) and None)
    assert (await desk.ann.delete(desk.path())).status == 422
    answer = await desk.ann.delete(desk.path(f"?documents={documents}"))
    assert answer.status == 202
    await desk.running.run_jobs()
    assert (await desk.ann.get(desk.path())).status == 404
    assert len(await desk.documents()) == left
    if left:  # they are like uploads now
        path = f"/v1/rag/knowledge-bases/{desk.base}/documents/by-path/list/0.txt"
        assert (await desk.ann.get(path)).status == 200


async def test_an_archive_goes_with_what_it_holds(desk: Desk) -> None:
    import io
    import zipfile

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("inner.txt", "Packed text of a letter.")
    desk.shelf.contents = {"all.zip": packed.getvalue(), "a.txt": b"Text."}
    await desk.add()
    await desk.running.run_jobs()
    listed = (await desk.ann.get(f"/v1/rag/knowledge-bases/{desk.base}/documents")).json()["items"]
    assert "inner.txt" in {one["filename"] for one in listed}
    del desk.shelf.contents["all.zip"]
    await desk.run()
    assert set(await desk.documents()) == {"a.txt"}


async def test_what_is_in_the_trash_goes_with_its_item(desk: Desk) -> None:
    """Gone at the source is gone in the trash, too; what changes there is taken out of it."""
    desk.shelf.contents |= {"a.txt": b"The pump weighs 7 kg.", "b.txt": b"The valve weighs 2 kg."}
    await desk.add()
    path = f"/v1/rag/knowledge-bases/{desk.base}"
    listed = (await desk.ann.get(f"{path}/documents")).json()["items"]
    ids = {one["filename"]: one["document_id"] for one in listed}
    for document in ids.values():
        assert (await desk.ann.delete(f"{path}/documents/{document}?trash=true")).json()["trashed"] is True
    assert (await desk.run())["state"] == "done"
    assert await desk.documents() == {}
    del desk.shelf.contents["a.txt"]
    desk.shelf.contents["b.txt"] = b"The valve weighs 3 kg."
    assert (await desk.run())["state"] == "done"
    assert (await desk.ann.get(f"{path}/trash")).json()["total"] == 0
    assert (await desk.ann.post(f"{path}/trash/{ids['a.txt']}/restore")).status == 404
    assert await desk.documents() == {"b.txt": "The valve weighs 3 kg."}


@pytest.mark.parametrize("content", [None, b""])
async def test_a_run_changes_nothing_in_the_trash(desk: Desk, content: bytes | None) -> None:
    """What was deleted or emptied there meanwhile goes when the knowledge base is back."""
    desk.shelf.contents = texts(2)
    await desk.add()
    assert (await desk.ann.post(desk.path("/run"), json={})).status == 202
    await desk.discard()
    if content is None:
        del desk.shelf.contents["list/1.txt"]
    else:
        desk.shelf.contents["list/1.txt"] = content
    desk.shelf.fetched.clear()
    await desk.running.run_jobs()
    await desk.take_back()
    assert ((await desk.last_run())["state"], desk.shelf.fetched) == ("cancelled", [])
    await desk.run()
    assert set(await desk.documents()) == {"0.txt"}


@pytest.mark.parametrize(("documents", "left"), [("keep", 2), ("delete", 0)])
async def test_a_source_goes_when_its_knowledge_base_is_back(desk: Desk, documents: str, left: int) -> None:
    """Its removal waits for that: meanwhile, nobody can keep or delete the documents."""
    desk.shelf.contents = texts(2)
    await desk.add()
    assert (await desk.ann.delete(desk.path(f"?documents={documents}"))).status == 202
    await desk.discard()
    await desk.running.run_jobs()
    await desk.take_back()
    assert (await desk.ann.get(desk.path())).json()["is_leaving"] is True
    due = update(SourceRecord).where(SourceRecord.id == desk.source).values(next_at=utc_now())
    await desk.running.platform.database.write(lambda unit: unit.session.execute(due) and None)
    await desk.tick()
    assert (await desk.ann.get(desk.path())).status == 404
    assert len(await desk.documents()) == left
    if left:
        path = f"/v1/rag/knowledge-bases/{desk.base}/documents/by-path/list/0.txt"
        assert (await desk.ann.get(path)).status == 200
