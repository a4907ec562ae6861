"""Versions of documents: replaced by their path or id, never both and never none, kept, restored, removed."""

from __future__ import annotations

import asyncio
import io
import unicodedata
import zipfile
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from builtin_plugins.rag.schemas_receipts import Receipt
from builtin_plugins.rag.services.verification import look_again
from kernel.testing import Actor, Reply, Running, platforms
from tests.builtin_plugins.rag.rag_support import make_base, path_of, record, somebody, upload
from tests.fakes.hash_embeddings import HashEmbeddings

pytestmark = pytest.mark.asyncio(loop_scope="session")

BASES = "/v1/rag/knowledge-bases"
OLD = "# Travel\n\nA hotel in Bergen may cost up to 185 euro a night.\n"
NEW = "# Travel\n\nA hotel in Bergen may cost up to 210 euro a night.\n"
QUESTION = "How much may a hotel in Bergen cost a night?"


async def send(
    actor: Actor, base: str, content: str | bytes, name: str = "travel.md", **fields: str
) -> Reply:
    """Upload a file with further fields of the form."""
    return await actor.post(f"{BASES}/{base}/upload", data=form_of(content, name, **fields))


def form_of(content: str | bytes, name: str = "travel.md", **fields: str) -> aiohttp.FormData:
    form = aiohttp.FormData()
    for field, value in fields.items():
        form.add_field(field, value)
    data = content.encode() if isinstance(content, str) else content
    form.add_field("file", io.BytesIO(data), filename=name)
    return form


async def put(actor: Actor, base: str, path: str, content: str, **headers: str) -> Reply:
    """Upload a file to a path."""
    where = f"{BASES}/{base}/documents/by-path/{path}"
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return await actor.put(where, data=form_of(content), headers=sent)


async def placed(running: Running, reply: Reply) -> dict[str, Any]:
    """The document of an upload, once it is read."""
    assert reply.status == 202, reply.body
    await running.run_jobs()
    return dict(reply.json())


async def amounts(actor: Actor, base: str) -> list[str]:
    """The amounts in the passages that a search finds."""
    found = await actor.post(f"{BASES}/{base}/search", json={"question": QUESTION, "top_k": 10})
    assert found.status == 200, found.body
    return [word for one in found.json()["items"] for word in ("185", "210") if word in one["text"]]


async def listed(actor: Actor, base: str) -> list[tuple[str, int, str]]:
    """The names, versions and states of a knowledge base's documents."""
    page = (await actor.get(f"{BASES}/{base}/documents")).json()
    assert page["total"] == len(page["items"])
    return [(one["filename"], one["version"], one["status"]) for one in page["items"]]


def packed(**files: str) -> bytes:
    """An archive of texts."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"{name}.md", text)
    return target.getvalue()


@pytest.mark.own_installation  # whose worker would read the second version at once
async def test_an_upload_to_a_path_replaces(running: Running, ann: Actor, base: str) -> None:
    first = await placed(running, await put(ann, base, "policies/travel.md", OLD))
    assert (first["version"], first["path"], first["filename"]) == (1, "policies/travel.md", "travel.md")
    second = await put(ann, base, "policies/travel.md", NEW)
    assert await amounts(ann, base) == ["185"]
    assert await listed(ann, base) == [("travel.md", 1, "completed"), ("travel.md", 2, "processing")]
    assert (await placed(running, second))["version"] == 2
    assert await amounts(ann, base) == ["210"]
    assert await listed(ann, base) == [("travel.md", 2, "completed")]
    old = await record(ann, base, first["document_id"])
    assert (old["status"], old["version"]) == ("superseded", 1)
    assert old["superseded_at"] is not None


async def test_an_earlier_version_can_be_opened_as_it_was(running: Running, ann: Actor, base: str) -> None:
    """Its file, its passages with their places, and the list of versions from each of them."""
    first = await placed(running, await put(ann, base, "a/b.md", OLD))
    before = (await ann.get(path_of(base, first["document_id"], "/chunks"))).json()
    second = await placed(running, await put(ann, base, "a/b.md", NEW))
    assert (await ann.get(path_of(base, first["document_id"], "/content"))).body == OLD.encode()
    assert (await ann.get(path_of(base, first["document_id"], "/chunks"))).json() == before
    for document in (first, second):
        page = (await ann.get(path_of(base, document["document_id"], "/versions"))).json()
        assert [one["version"] for one in page["items"]] == [2, 1]
    page = (await ann.get(path_of(base, second["document_id"], "/versions?limit=1&offset=1"))).json()
    assert ([one["document_id"] for one in page["items"]], page["total"]) == ([first["document_id"]], 2)


async def test_a_citation_names_its_version(running: Running, ann: Actor, base: str) -> None:
    """Its number and the digest of its file, in searches and answers, of replaced versions, too."""
    first = await placed(running, await put(ann, base, "a/b.md", OLD))
    later = (await record(ann, base, first["document_id"]))["completed_at"]
    second = await placed(running, await put(ann, base, "a/b.md", NEW))
    for document, sent in ((first, {"as_of": later}), (second, {})):
        wanted = (document["version"], document["sha256"])
        found = await ann.post(f"{BASES}/{base}/search", json={"question": QUESTION, **sent})
        assert [(one["version"], one["sha256"]) for one in found.json()["items"]] == [wanted]
        made = await ann.post("/v1/rag/pipeline", json={"name": "P", "knowledge_base_ids": [base]})
        place = f"/v1/rag/pipeline/{made.json()['pipeline_id']}/query"
        answer = (await ann.post(place, json={"question": QUESTION, **sent})).json()
        assert [(one["version"], one["sha256"]) for one in answer["sources"]] == [wanted]


async def test_the_same_bytes_are_no_new_version(running: Running, ann: Actor, base: str) -> None:
    first = await placed(running, await put(ann, base, "a.md", OLD))
    again = await put(ann, base, "a.md", OLD)
    assert (again.status, again.json()["document_id"]) == (200, first["document_id"])
    assert again.headers["ETag"] == f'"{first["sha256"]}"'


async def test_two_paths_may_have_the_same_bytes(running: Running, ann: Actor, base: str) -> None:
    """Each is a document of its own: deleting one leaves the other."""
    first = await placed(running, await put(ann, base, "one/a.md", OLD))
    await placed(running, await put(ann, base, "two/a.md", OLD))
    assert len(await listed(ann, base)) == 2
    assert (await ann.delete(path_of(base, first["document_id"]))).status == 200
    assert await amounts(ann, base) == ["185"]


async def test_an_id_of_the_uploader_replaces(running: Running, ann: Actor, base: str) -> None:
    """Whatever the file's name; both at once are refused."""
    await placed(running, await send(ann, base, OLD, external_id="page-7"))
    second = await placed(running, await send(ann, base, NEW, "renamed.md", external_id="page-7"))
    assert (second["version"], second["external_id"], second["path"]) == (2, "page-7", None)
    assert await listed(ann, base) == [("renamed.md", 2, "completed")]
    both = await send(ann, base, NEW, external_id="page-7", path="a.md")
    assert (both.status, both.json()["detail"][0]["loc"]) == (422, ["body", "external_id"])


async def test_a_name_from_macos_is_the_same_path(running: Running, ann: Actor, base: str) -> None:
    parted = unicodedata.normalize("NFD", "Übersicht.md")
    await placed(running, await send(ann, base, OLD, path=parted))
    second = await placed(running, await send(ann, base, NEW, path="Übersicht.md"))
    assert second["version"] == 2


@pytest.mark.parametrize("path", ["/", "a\x00b", "x" * 501, "..", "a/../b.md", "a/./b.md", "a//b.md"])
async def test_an_unusable_path_is_refused(ann: Actor, base: str, path: str) -> None:
    """Clients and proxies would resolve the last ones to another path."""
    refused = await send(ann, base, OLD, path=path)
    assert (refused.status, refused.json()["detail"][0]["loc"]) == (422, ["body", "path"])
    assert await listed(ann, base) == []


async def test_a_failed_version_leaves_the_earlier_one(running: Running, ann: Actor, base: str) -> None:
    """The next one replaces both."""
    await placed(running, await put(ann, base, "a.md", OLD))
    await placed(running, await put(ann, base, "a.md", " \n"))
    assert await amounts(ann, base) == ["185"]
    assert await listed(ann, base) == [("a.md", 1, "completed"), ("a.md", 2, "failed")]
    await placed(running, await put(ann, base, "a.md", NEW))
    assert await listed(ann, base) == [("a.md", 3, "completed")]
    assert await amounts(ann, base) == ["210"]


async def test_several_versions_at_once_leave_the_newest(running: Running, ann: Actor, base: str) -> None:
    """In whichever order they are read."""
    replies = [await put(ann, base, "a.md", f"{OLD}\n\nNumber {number}.\n") for number in range(5)]
    await placed(running, replies[-1])
    assert await listed(ann, base) == [("a.md", 5, "completed")]
    states = [(await record(ann, base, one.json()["document_id"]))["status"] for one in replies]
    assert states == ["superseded"] * 4 + ["completed"]


async def test_concurrent_uploads_to_a_path_are_versions(running: Running, ann: Actor, base: str) -> None:
    contents = [f"{OLD}\n\nNumber {number}.\n" for number in range(6)]
    replies = await asyncio.gather(*(put(ann, base, "a.md", content) for content in contents))
    assert sorted(reply.json()["version"] for reply in replies) == [1, 2, 3, 4, 5, 6]
    await running.run_jobs()
    assert await listed(ann, base) == [("a.md", 6, "completed")]


async def test_a_search_sees_one_version_at_any_time(running: Running, ann: Actor, base: str) -> None:
    """Never both and never none, while one replaces the other again and again."""
    await placed(running, await put(ann, base, "a.md", OLD))
    over, seen = asyncio.Event(), []

    async def look() -> None:
        while not over.is_set():
            seen.append(await amounts(ann, base))

    lookers = [asyncio.create_task(look()) for _ in range(3)]
    for number in range(12):
        await placed(running, await put(ann, base, "a.md", f"{(NEW, OLD)[number % 2]}\n\n{number}\n"))
    over.set()
    await asyncio.gather(*lookers)
    assert {tuple(one) for one in seen} == {("185",), ("210",)}


async def test_expectations_of_the_present_version(running: Running, ann: Actor, base: str) -> None:
    """`If-Match` and `If-None-Match` are checked in the upload's transaction."""
    missing = await put(ann, base, "a.md", OLD, If_Match="*")
    assert (missing.status, missing.json()["code"]) == (412, "version_mismatch")
    first = await placed(running, await put(ann, base, "a.md", OLD, If_None_Match="*"))
    again = await put(ann, base, "a.md", NEW, If_None_Match="*")
    assert (again.status, again.json()["code"]) == (412, "version_mismatch")
    wrong = await put(ann, base, "a.md", NEW, If_Match='"0000"')
    assert (wrong.status, wrong.json()["code"]) == (412, "version_mismatch")
    shown = await ann.get(f"{BASES}/{base}/documents/by-path/a.md")
    assert shown.json()["document_id"] == first["document_id"]
    second = await put(ann, base, "a.md", NEW, If_Match=shown.headers["ETag"])
    assert (second.status, second.json()["version"]) == (202, 2)
    third = await put(ann, base, "a.md", OLD, If_Match=second.json()["sha256"])  # as a record has it
    assert (third.status, third.json()["version"]) == (202, 3)


async def test_a_path_that_nobody_uploaded_is_not_found(ann: Actor, base: str) -> None:
    missing = await ann.get(f"{BASES}/{base}/documents/by-path/no/such.md")
    assert (missing.status, missing.json()["code"]) == (404, "document_not_found")


async def test_a_plain_upload_names_its_namesakes(running: Running, ann: Actor, base: str) -> None:
    """It stays a document of its own unless the sender says otherwise."""
    first = await placed(running, await upload(ann, base, "travel.md", OLD))
    assert first["same_name"] == []
    refused = await send(ann, base, NEW, on_conflict="fail")
    assert (refused.status, refused.json()["code"]) == (409, "document_exists")
    assert refused.json()["detail"]["document_ids"] == [first["document_id"]]
    second = await placed(running, await send(ann, base, NEW))
    assert (second["same_name"], second["version"]) == ([first["document_id"]], 1)
    unclear = await send(ann, base, f"{NEW}\nMore.\n", on_conflict="replace")
    assert (unclear.status, unclear.json()["code"]) == (409, "document_exists")
    odd = await send(ann, base, NEW, on_conflict="perhaps")
    assert (odd.status, odd.json()["detail"][0]["loc"]) == (422, ["body", "on_conflict"])


async def test_a_plain_upload_can_replace_by_its_name(running: Running, ann: Actor, base: str) -> None:
    await placed(running, await upload(ann, base, "travel.md", OLD))
    second = await placed(running, await send(ann, base, NEW, on_conflict="replace"))
    assert (second["version"], second["path"], second["same_name"]) == (2, "travel.md", [])
    assert await amounts(ann, base) == ["210"]
    third = await placed(running, await send(ann, base, OLD, on_conflict="replace"))
    assert third["version"] == 3
    assert await amounts(ann, base) == ["185"]


async def test_a_plain_document_takes_a_path(running: Running, ann: Actor, base: str) -> None:
    """The same bytes under the same name, with a path: no second document."""
    first = await placed(running, await upload(ann, base, "travel.md", OLD))
    again = await put(ann, base, "policies/travel.md", OLD)
    assert (again.status, again.json()["document_id"]) == (200, first["document_id"])
    assert again.json()["path"] == "policies/travel.md"
    assert (await placed(running, await put(ann, base, "policies/travel.md", NEW)))["version"] == 2


async def test_an_earlier_version_can_be_restored(running: Running, ann: Actor, base: str) -> None:
    first = await placed(running, await put(ann, base, "a.md", OLD))
    second = await placed(running, await put(ann, base, "a.md", NEW))
    third = await placed(running, await ann.post(path_of(base, first["document_id"], "/restore")))
    assert (third["version"], third["sha256"]) == (3, first["sha256"])
    assert await amounts(ann, base) == ["185"]
    assert (await record(ann, base, second["document_id"]))["status"] == "superseded"
    again = await ann.post(path_of(base, first["document_id"], "/restore"))
    assert (again.status, again.json()["document_id"]) == (200, third["document_id"])


async def test_deleting_removes_all_versions(running: Running, ann: Actor, base: str) -> None:
    """The receipt lists them, and looking again finds nothing of any."""
    first = await placed(running, await put(ann, base, "a.md", OLD))
    second = await placed(running, await put(ann, base, "a.md", NEW))
    deleted = await ann.delete(path_of(base, second["document_id"]))
    receipt = deleted.json()["receipt"]
    assert {one["document_id"] for one in receipt["documents"]} == {
        first["document_id"],
        second["document_id"],
    }
    assert {one["place"]: one["count"] for one in receipt["removed"]}["files"] == 2
    for document in (first, second):
        assert (await ann.get(path_of(base, document["document_id"]))).status == 404
    assert {one.left for one in await look_again(running.platform, Receipt(**receipt))} == {0}
    fresh = await put(ann, base, "a.md", NEW)
    assert (fresh.status, fresh.json()["version"]) == (202, 1)


async def test_deleting_an_earlier_version_leaves_the_present_one(
    running: Running, ann: Actor, base: str
) -> None:
    first = await placed(running, await put(ann, base, "a.md", OLD))
    await placed(running, await put(ann, base, "a.md", NEW))
    assert (await ann.delete(path_of(base, first["document_id"]))).status == 200
    assert await amounts(ann, base) == ["210"]
    assert (await ann.get(path_of(base, first["document_id"]))).status == 404


async def test_files_inside_are_versions_of_their_own(running: Running, ann: Actor, base: str) -> None:
    """A new archive replaces what changed, keeps what did not, and removes what it has no more."""

    same = "Breakfast is paid by the company, in all hotels.\n"
    gone = "Trains are booked in second class by everybody.\n"
    await placed(running, await send(ann, base, packed(a=OLD, b=same, c=gone), "p.zip", path="p.zip"))
    await placed(running, await send(ann, base, packed(a=NEW, b=same), "p.zip", path="p.zip"))
    assert await amounts(ann, base) == ["210"]
    names = {name: version for name, version, _ in await listed(ann, base)}
    assert names == {"p.zip": 2, "a.md": 2, "b.md": 1}


async def test_others_can_neither_replace_nor_read(running: Running, ann: Actor, base: str) -> None:
    first = await placed(running, await put(ann, base, "a.md", OLD))
    eve = await somebody(running)
    own = await make_base(eve)
    assert (await put(eve, base, "a.md", NEW)).status == 404
    for path in ("/versions", "/chunks", ""):
        assert (await eve.get(path_of(base, first["document_id"], path))).status == 404
    assert (await eve.post(path_of(base, first["document_id"], "/restore"))).status == 404
    assert (await eve.get(path_of(own, first["document_id"], "/versions"))).status == 404
    assert (await eve.get(f"{BASES}/{base}/documents/by-path/a.md")).status == 404


@pytest.mark.parametrize("path", ["", "%2F"])
async def test_an_upload_to_no_path_is_refused(ann: Actor, base: str, path: str) -> None:
    refused = await put(ann, base, path, OLD)
    assert (refused.status, refused.json()["detail"][0]["loc"]) == (422, ["body", "path"])
    assert await listed(ann, base) == []


async def test_a_slash_at_the_end_names_the_same_document(running: Running, ann: Actor, base: str) -> None:
    first = await placed(running, await put(ann, base, "policies/travel.md/", OLD))
    assert (first["path"], first["filename"]) == ("policies/travel.md", "travel.md")
    assert (await placed(running, await put(ann, base, "policies/travel.md", NEW)))["version"] == 2


async def test_an_expectation_of_nothing_is_never_met(running: Running, ann: Actor, base: str) -> None:
    await placed(running, await put(ann, base, "a.md", OLD))
    for sent in ("", '"*"', 'W/"*"', "0000"):
        refused = await put(ann, base, "a.md", NEW, If_Match=sent)
        assert (refused.status, refused.json()["code"]) == (412, "version_mismatch"), sent
    assert await listed(ann, base) == [("a.md", 1, "completed")]


async def test_a_plain_upload_revives_no_failed_version(running: Running, ann: Actor, base: str) -> None:
    """The same bytes with another name are a document of their own; they replace nothing."""
    await placed(running, await put(ann, base, "a.md", OLD))
    await put(ann, base, "a.md", NEW)
    await ann.post(f"{BASES}/{base}/ingestion/cancel")
    other = await placed(running, await upload(ann, base, "other.md", NEW))
    assert (other["filename"], other["path"], other["version"]) == ("other.md", None, 1)
    again = await upload(ann, base, "other.md", NEW)
    assert (again.status, again.json()["document_id"]) == (200, other["document_id"])
    assert sorted(await amounts(ann, base)) == ["185", "210"]
    assert ("a.md", 2, "failed") in await listed(ann, base)


async def test_a_name_that_is_the_path_of_another_is_no_identity(
    running: Running, ann: Actor, base: str
) -> None:
    """Replacing by name must not put two documents under one path."""
    plain = await placed(running, await upload(ann, base, "travel.md", OLD))
    other = await placed(running, await send(ann, base, "# Other\n\nTrains.\n", "b.md", path="travel.md"))
    refused = await send(ann, base, NEW, on_conflict="replace")
    assert (refused.status, refused.json()["code"]) == (409, "document_exists")
    assert refused.json()["detail"]["document_ids"] == [plain["document_id"], other["document_id"]]


async def test_an_older_version_that_is_read_after_a_newer_one(
    running: Running, ann: Actor, base: str
) -> None:
    """As one that is retried while the newer one waits: both are read together."""
    first = (await put(ann, base, "a.md", OLD)).json()
    await ann.post(f"{BASES}/{base}/ingestion/cancel")
    second = await put(ann, base, "a.md", NEW)
    assert (await ann.post(f"{BASES}/{base}/ingestion/retry")).status == 200
    await placed(running, second)
    assert await listed(ann, base) == [("a.md", 2, "completed")]
    assert await amounts(ann, base) == ["210"]
    assert (await record(ann, base, first["document_id"]))["status"] == "superseded"


async def test_a_file_that_failed_in_an_archive_goes_with_it(running: Running, ann: Actor, base: str) -> None:
    """With the version that answered until then, if the next archive has neither."""
    same = "Breakfast is paid by the company, in all hotels.\n"
    await placed(running, await send(ann, base, packed(a=OLD, b=same), "p.zip", path="p.zip"))
    await placed(running, await send(ann, base, packed(a=" \n ", b=same), "p.zip", path="p.zip"))
    assert await amounts(ann, base) == ["185"]
    await placed(running, await send(ann, base, packed(b=same), "p.zip", path="p.zip"))
    assert await amounts(ann, base) == []
    names = {name: version for name, version, _ in await listed(ann, base)}
    assert names == {"p.zip": 3, "b.md": 1}


async def test_files_with_long_paths_go_with_their_archive(running: Running, ann: Actor, base: str) -> None:
    folder, path = "/".join(["f" * 100] * 3), "/".join(["g" * 100] * 3) + "/p.zip"
    await placed(running, await send(ann, base, packed(**{f"{folder}/a": OLD}), "p.zip", path=path))
    await placed(running, await send(ann, base, packed(**{f"{folder}/a": NEW}), "p.zip", path=path))
    assert await amounts(ann, base) == ["210"]
    assert ("a.md", 2, "completed") in await listed(ann, base)


async def test_an_archive_takes_no_document_of_its_own(running: Running, ann: Actor, base: str) -> None:
    """What was uploaded by itself stays when a later archive has the same file no more."""
    plain = await placed(running, await upload(ann, base, "a.md", OLD))
    same = "Breakfast is paid by the company, in all hotels.\n"
    await placed(running, await send(ann, base, packed(a=OLD, b=same), "p.zip", path="p.zip"))
    await placed(running, await send(ann, base, packed(b=same), "p.zip", path="p.zip"))
    assert await amounts(ann, base) == ["185"]
    assert (await record(ann, base, plain["document_id"]))["status"] == "completed"


async def test_deleting_a_failed_version_leaves_the_one_that_answers(
    running: Running, ann: Actor, base: str
) -> None:
    first = await placed(running, await put(ann, base, "a.md", OLD))
    failed = await placed(running, await put(ann, base, "a.md", " \n"))
    deleted = await ann.delete(path_of(base, failed["document_id"]))
    assert [one["document_id"] for one in deleted.json()["receipt"]["documents"]] == [failed["document_id"]]
    assert await listed(ann, base) == [("a.md", 1, "completed")]
    assert await amounts(ann, base) == ["185"]
    assert (await ann.get(f"{BASES}/{base}/documents/by-path/a.md")).json()["document_id"] == first[
        "document_id"
    ]


async def test_a_plain_archive_that_takes_a_path_is_replaced_whole(
    running: Running, ann: Actor, base: str
) -> None:
    """Its files had no path of their own until then."""
    same = "Breakfast is paid by the company, in all hotels.\n"
    first = packed(a=OLD, b=same)
    await placed(running, await upload(ann, base, "p.zip", first))
    assert (await send(ann, base, first, "p.zip", path="p.zip")).status == 200
    await placed(running, await send(ann, base, packed(a=NEW, b=same), "p.zip", path="p.zip"))
    assert await amounts(ann, base) == ["210"]
    assert len(await listed(ann, base)) == 3
    again = await placed(running, await upload(ann, base, "old.md", OLD))
    assert again["version"] == 1
    assert sorted(await amounts(ann, base)) == ["185", "210"]


async def test_without_history_nothing_replaced_is_kept(tmp_path: Path) -> None:
    """Of files that the next archive has no more, too."""
    async with platforms(tmp_path) as start:
        alone = await start("rag", HashEmbeddings(), env={"PLATFORM_RAG_DOCUMENT_VERSIONS": "0"})
        ann = await somebody(alone)
        base = await make_base(ann)
        same = "Breakfast is paid by the company, in all hotels.\n"
        first = await placed(alone, await send(ann, base, packed(a=OLD, b=same), "p.zip", path="p.zip"))
        page = (await ann.get(f"{BASES}/{base}/documents")).json()
        member = next(one["document_id"] for one in page["items"] if one["filename"] == "a.md")
        await placed(alone, await send(ann, base, packed(b=same), "p.zip", path="p.zip"))
        for document in (first["document_id"], member):
            assert (await ann.get(path_of(base, document))).status == 404


async def test_two_paths_with_the_same_bytes_are_carried_elsewhere(
    running: Running, ann: Actor, base: str
) -> None:
    """An export has both, and an import makes both of them."""
    await placed(running, await put(ann, base, "one/a.md", OLD))
    await placed(running, await put(ann, base, "two/a.md", OLD))
    file = (await ann.get(f"{BASES}/{base}/export")).body
    copied = (await ann.upload(f"{BASES}/import", "copy.kb.zip", file)).json()["knowledge_base_id"]
    await running.run_jobs()
    paths = [one["path"] for one in (await ann.get(f"{BASES}/{copied}/documents")).json()["items"]]
    assert sorted(paths) == ["one/a.md", "two/a.md"]
