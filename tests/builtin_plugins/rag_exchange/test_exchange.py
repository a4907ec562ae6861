"""A knowledge base as a file: what comes with it, what a hostile file can't do, and a second run."""

from __future__ import annotations

import io
import json
import struct
import tracemalloc
import zipfile
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import pytest_asyncio

from builtin_plugins.evaluation.plugin import EvaluationPlugin
from builtin_plugins.rag_exchange.bundle import MOST_DOCUMENTS
from builtin_plugins.vectors.api import VECTORS
from kernel.sdk.storage import held_blobs_of
from kernel.testing import Actor, Reply, Running, audited, platforms
from tests.builtin_plugins.rag.rag_support import Meanwhile, ingest, make_base, somebody
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.keeping import Keeper

pytestmark = pytest.mark.asyncio(loop_scope="module")

BASES = "/v1/rag/knowledge-bases"
TEXTS = {
    "ferry.txt": "The ferry to Norderney leaves at nine. It carries forty cars and two hundred people.",
    "tower.md": "# The tower\n\nThe lighthouse was built in 1874 and is sixty metres high.",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def source(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Running, Actor, str]]:
    """A platform with a knowledge base of two documents and an evaluation set."""
    async with platforms(tmp_path_factory.mktemp("source")) as start:
        running = await start("rag_exchange", "extractive_answers", HashEmbeddings(), EvaluationPlugin)
        ann = await somebody(running)
        base = await make_base(ann, name="Harbour", description="of ships", embedding_model="all-minilm")
        for name, text in TEXTS.items():
            await ingest(running, ann, base, name, text)
        (document, *_) = (await ann.get(f"{BASES}/{base}/documents")).json()["items"]
        path = f"{BASES}/{base}/documents/{document['document_id']}/chunks"
        passage = (await ann.get(path)).json()["items"][0]["chunk_id"]
        questions = [
            {"question": "When does the ferry leave?", "passages": [passage], "documents": ["ferry.txt"]},
            {"question": "Who is the king?", "unanswerable": True},
        ]
        body = {"knowledge_base_id": base, "name": "Ships", "questions": questions}
        assert (await ann.post("/v1/rag/evaluation/sets", json=body)).status == 201
        yield running, ann, base


async def exported(ann: Actor, base: str) -> bytes:
    """The file."""
    reply = await ann.get(f"{BASES}/{base}/export")
    assert (reply.status, reply.headers["Content-Type"]) == (200, "application/zip"), reply.body
    return reply.body


async def imported(running: Running, actor: Actor, file: bytes) -> tuple[str, Reply]:
    reply = await actor.upload(f"{BASES}/import", "harbour.kb.zip", file)
    assert reply.status == 202, reply.body
    await running.run_jobs()
    return reply.json()["knowledge_base_id"], await actor.get(f"/v1/jobs/{reply.json()['job_id']}")


async def waiting_files(running: Running) -> list[str]:
    return list(await running.platform.database.read(held_blobs_of, "rag:import:"))


async def search(actor: Actor, base: str) -> list[dict[str, Any]]:
    """What is found, without ids."""
    body = {"question": "How high is the lighthouse?"}
    reply = await actor.post(f"{BASES}/{base}/search", json=body)
    assert reply.status == 200, reply.body
    gone = ("chunk_id", "document_id", "knowledge_base_id", "knowledge_base", "scores", "score")
    return [{key: value for key, value in item.items() if key not in gone} for item in reply.json()["items"]]


@pytest.mark.long
@pytest.mark.parametrize("engine", ["hash-1", "hash-2"])
async def test_it_is_the_same_elsewhere(
    engine: str, source: tuple[Running, Actor, str], database_url: str | None, tmp_path: Path
) -> None:
    _, ann, base = source
    file, embeddings = await exported(ann, base), HashEmbeddings(engine)
    async with platforms(tmp_path / "second") as start:
        running = await start(
            "rag_exchange",
            "extractive_answers",
            embeddings,
            EvaluationPlugin,
            env={"DATABASE_URL": database_url},
        )
        bob = await somebody(running)
        new, job = await imported(running, bob, file)
        assert job.json()["status"] == "done", job.body
        # A text to see whether the model is here, and one which engine; passages only for another one.
        assert embeddings.calls == (2 if engine == "hash-1" else 4)
        shown = (await bob.get(f"{BASES}/{new}")).json()
        assert [shown[key] for key in ("name", "description", "visibility")] == [
            "Harbour",
            "of ships",
            "private",
        ]
        assert (shown["document_count"], shown["vector_count"]) == (2, 2)
        assert await search(bob, new) == await search(ann, base)
        documents = (await bob.get(f"{BASES}/{new}/documents")).json()["items"]
        contents = {
            one["filename"]: (await bob.get(f"{BASES}/{new}/documents/{one['document_id']}/content")).body
            for one in documents
        }
        assert contents == {name: text.encode() for name, text in TEXTS.items()}
        (found,) = (await bob.get("/v1/rag/evaluation/sets")).json()["items"]
        assert (found["name"], found["knowledge_base_id"], found["question_count"]) == ("Ships", new, 2)
        questions = (await bob.get(f"/v1/rag/evaluation/sets/{found['id']}/questions")).json()["items"]
        path = f"{BASES}/{new}/documents/{documents[0]['document_id']}/chunks"
        passage = (await bob.get(path)).json()["items"][0]["chunk_id"]
        assert (questions[0]["passages"], questions[0]["documents"]) == ([passage], ["ferry.txt"])
        (row,), _ = await running.platform.resource(VECTORS).points(
            f"rag:{new}", documents[0]["document_id"], 1, 0
        )
        assert row.payload["language"] == "en"  # told by a job, not carried in the file
        # It can be exported in turn, and the file is read only once.
        again = zipfile.ZipFile(io.BytesIO(await exported(bob, new)))
        assert again.testzip() is None
        assert await waiting_files(running) == []


async def test_what_came_out_of_what_is_kept(source: tuple[Running, Actor, str]) -> None:
    running, ann, _ = source
    base, archive = await make_base(ann, name="Boxes"), io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("june.txt", "The lighthouse was painted in June.")
    box = await ingest(running, ann, base, "box.zip", archive.getvalue())
    await running.run_jobs()

    async def parent_of_june(file: bytes) -> tuple[str | None, str | None]:
        """What it came out of in the imported base, and the archive there."""
        new, job = await imported(running, ann, file)
        assert job.json()["status"] == "done", job.body
        listed = (await ann.get(f"{BASES}/{new}/documents")).json()["items"]
        ids = {one["filename"]: one["document_id"] for one in listed}
        june = next(one for one in listed if one["filename"] == "june.txt")
        return june["parent_id"], ids.get("box.zip")

    def member_first(members: dict[str, bytes]) -> None:
        """The order of an archive that failed and was taken in again: its own time is the later one then."""
        manifest = json.loads(members["manifest.json"])
        members["manifest.json"] = json.dumps({**manifest, "documents": manifest["documents"][::-1]}).encode()

    whole = await exported(ann, base)
    for exchanged in (whole, rewritten(whole, member_first)):
        parent, there = await parent_of_june(exchanged)
        assert parent == there and there not in (None, box["document_id"])
    assert (await ann.delete(f"{BASES}/{base}/documents/{box['document_id']}")).status == 200
    assert await parent_of_june(await exported(ann, base)) == (None, None)


async def test_only_the_owner_exports(source: tuple[Running, Actor, str]) -> None:
    running, ann, base = source
    assert (await (await somebody(running)).get(f"{BASES}/{base}/export")).status == 404
    await exported(ann, base)
    assert "rag.knowledge_base.exported" in [e.action for e in await audited(running, target_id=base)]


async def test_nobody_exports_what_one_may_not_read(source: tuple[Running, Actor, str]) -> None:
    running, ann, _ = source
    base = await make_base(ann)
    keeper = Keeper(running.platform, base)
    await keeper.put("plan.md", "The lighthouse will be sold.", keeper.readers("board"))
    await running.run_jobs()
    refused = await ann.get(f"{BASES}/{base}/export")
    assert (refused.status, refused.json()["code"]) == (409, "unreadable_documents")
    await keeper.members(board=[ann.user["id"]])
    with zipfile.ZipFile(io.BytesIO(await exported(ann, base))) as file:
        assert b"plan.md" in file.read("manifest.json")


async def test_its_name(source: tuple[Running, Actor, str]) -> None:
    """The file is called as the knowledge base is, in any script."""
    _, ann, _ = source
    base = await make_base(ann, name="Häfen/Порт", embedding_model="all-minilm")
    disposition = (await ann.get(f"{BASES}/{base}/export")).headers["Content-Disposition"]
    plain, _, full = disposition.partition("; filename*=UTF-8''")
    assert plain == 'attachment; filename="Hafen_____.kb.zip"'
    assert unquote(full) == "Häfen_Порт.kb.zip"


def rewritten(file: bytes, change: Callable[[dict[str, bytes]], None]) -> bytes:
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target.getvalue()


def edited(**changes: Any) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        members["manifest.json"] = json.dumps(json.loads(members["manifest.json"]) | changes).encode()

    return change


def first(members: dict[str, bytes], kind: str) -> str:
    return next(name for name in members if name.startswith(kind))


def without(kind: str) -> Callable[[dict[str, bytes]], None]:
    return lambda members: members.pop(first(members, kind)) and None


def first_document(**changes: Any) -> Callable[[bytes], bytes]:
    def change(members: dict[str, bytes]) -> None:
        manifest = json.loads(members["manifest.json"])
        manifest["documents"][0].update(changes)
        members["manifest.json"] = json.dumps(manifest).encode()

    return lambda file: rewritten(file, change)


SETTINGS = {"name": "x", "embedding_model": "all-minilm", "chunk_size": 9, "chunk_overlap": 0}
AT_ONCE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda file: b"",
    "no zip": lambda file: b"PK is not enough",
    "truncated": lambda file: file[: len(file) // 2],
    "no manifest": lambda file: rewritten(file, without("manifest")),
    "another format": lambda file: rewritten(file, edited(format="platform.team")),
    "a later version": lambda file: rewritten(file, edited(version=2)),
    "an unknown model": lambda file: rewritten(
        file,
        edited(knowledge_base={"name": "x", "embedding_model": "none", "chunk_size": 9, "chunk_overlap": 0}),
    ),
    "no original": lambda file: rewritten(file, without("originals")),
    "a path": first_document(filename="../../etc/passwd"),
    "a time that no database holds": first_document(uploaded_at="0001-01-01T00:00:00+14:00"),
    "a NUL character": first_document(notice="a\0b"),
    "a header in a type": first_document(content_type="text/html\r\nX-Other: 1"),
    "more pages than a number holds": first_document(page_count=2**31),
    "a manifest that fills the memory": lambda file: rewritten(
        file, edited(plugins={"evaluation": list(range(2_100_000))})
    ),
    "a bomb": lambda file: rewritten(file, lambda members: members.update(bomb=b"\0" * 50_000_000)),
}


@pytest.mark.parametrize("harm", AT_ONCE.values(), ids=AT_ONCE.keys())
async def test_a_bad_file_is_refused_at_once(
    harm: Callable[[bytes], bytes], source: tuple[Running, Actor, str]
) -> None:
    running, ann, base = source
    bob = await somebody(running)
    reply = await bob.upload(f"{BASES}/import", "x.zip", harm(await exported(ann, base)))
    assert reply.status == 422, reply.body
    assert (await bob.get(BASES)).json()["total"] == 0


async def test_files_without_end(source: tuple[Running, Actor, str]) -> None:
    """A table of contents with too many entries is refused before each of them becomes an object."""
    running, _, _ = source
    entry = struct.pack("<4s16xIIHHHHHII", b"PK\x01\x02", 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"x"
    many = 3 * MOST_DOCUMENTS + 2
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, many % 2**16, many % 2**16, many * len(entry), 0, 0)
    bob = await somebody(running)
    reply = await bob.upload(f"{BASES}/import", "x.zip", entry * many + end)
    assert reply.status == 422, reply.body


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
async def test_a_bomb_that_calls_itself_small(method: int, source: tuple[Running, Actor, str]) -> None:
    running, _, _ = source
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("manifest.json", bytes(100 << 20))
    bomb = bytearray(file.getvalue())
    struct.pack_into("<I", bomb, bomb.rindex(b"PK\x01\x02") + 24, 1000)
    bob = await somebody(running)
    tracemalloc.start()
    try:
        reply = await bob.upload(f"{BASES}/import", "x.zip", bytes(bomb))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (reply.status, most < 50 << 20) == (422, True), (most, reply.body)


async def test_problems_without_end(source: tuple[Running, Actor, str]) -> None:
    """A manifest is read in another process: listing what is wrong with it here would hold up everybody."""
    running, ann, base = source
    file = rewritten(await exported(ann, base), edited(**dict.fromkeys(map("k{}".format, range(200_000)), 1)))
    bob = await somebody(running)
    tracemalloc.start()
    try:
        reply = await bob.upload(f"{BASES}/import", "x.zip", file)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (reply.status, most < 20 << 20) == (422, True), (most, reply.body)
    assert "k0: Extra inputs are not permitted" in reply.body.decode()


def overwritten(kind: str, content: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    def change(members: dict[str, bytes]) -> None:
        name = first(members, kind)
        members[name] = content(members[name])

    return lambda file: rewritten(file, change)


LATER: dict[str, Callable[[bytes], bytes]] = {
    "another original": overwritten("originals", lambda old: old[:-1] + b"?"),
    "a passage less": overwritten("passages", lambda old: b""),
    "a passage more": overwritten("passages", lambda old: old + old),
    "a NUL in a passage": overwritten("passages", lambda old: old.replace(b'"text": "', b'"text": "\\u0000')),
    "no JSON": overwritten("passages", lambda old: b"{" * 100_000 + b"\n"),
    "vectors that are no numbers": overwritten("vectors", lambda old: b"\xff" * len(old)),
    "vectors without length": overwritten("vectors", lambda old: b"\0" * len(old)),
    "questions without end": lambda file: rewritten(
        file, edited(plugins={"evaluation": {"sets": [{"name": "x", "questions": 7}]}})
    ),
}


@pytest.mark.parametrize("harm", LATER.values(), ids=LATER.keys())
async def test_a_file_that_proves_damaged_leaves_nothing(
    harm: Callable[[bytes], bytes], source: tuple[Running, Actor, str]
) -> None:
    """The job fails with the reason, and the knowledge base is gone with all that was read."""
    running, ann, base = source
    bob = await somebody(running)
    new, job = await imported(running, bob, harm(await exported(ann, base)))
    assert job.json()["status"] == "failed" and job.json()["error"], job.body
    assert (await bob.get(f"{BASES}/{new}")).status == 404
    await running.run_jobs()
    assert await waiting_files(running) == []


async def test_it_goes_on_after_a_kill(
    source: tuple[Running, Actor, str], tmp_path: Path, database_url: str | None
) -> None:
    _, ann, base = source
    file = await exported(ann, base)
    async with platforms(tmp_path / "third") as start:
        embeddings = HashEmbeddings("hash-2")
        running = await start(
            "rag_exchange",
            "extractive_answers",
            embeddings,
            EvaluationPlugin,
            env={"DATABASE_URL": database_url},
        )
        bob = await somebody(running)
        calls = 0

        def dying() -> None:
            nonlocal calls
            calls += 1
            if calls == 3:  # the two probes, then the first document
                raise RuntimeError("the worker is gone")

        embeddings.before = dying
        new, job = await imported(running, bob, file)
        assert job.json()["status"] == "done", job.body
        assert calls > 3
        shown = (await bob.get(f"{BASES}/{new}")).json()
        assert (shown["document_count"], shown["vector_count"]) == (2, 2)
        assert (await bob.get("/v1/rag/evaluation/sets")).json()["total"] == 1


async def delete_at_second(actor: Actor, filename: str, text: str) -> None:
    """Delete a document of the only knowledge base once the second one is embedded."""
    if "second" in text:
        (base,) = (await actor.get(BASES)).json()["items"]
        path = f"{BASES}/{base['id']}/documents"
        listed = (await actor.get(path)).json()["items"]
        document = next(one["document_id"] for one in listed if one["filename"] == filename)
        assert (await actor.delete(f"{path}/{document}")).status == 200


async def test_what_is_deleted_meanwhile_leaves_no_questions(tmp_path: Path) -> None:
    """A document deleted during the import takes along the questions that were made from it elsewhere."""
    async with platforms(tmp_path / "here") as start:
        running = await start("rag_exchange", "extractive_answers", HashEmbeddings(), EvaluationPlugin)
        ann = await somebody(running)
        base = await make_base(ann, embedding_model="all-minilm")
        for name in ("first", "second"):
            await ingest(
                running, ann, base, f"{name}.md", f"# The {name} harbour\n\nIt was built for herring."
            )
        body = {"knowledge_base_id": base, "name": "Harbours"}
        made = (await ann.post("/v1/rag/evaluation/sets", json=body)).json()
        path = f"/v1/rag/evaluation/sets/{made['id']}/generate"
        assert (await ann.post(path, json={"limit": 20})).json()["added"] == 2
        file = await exported(ann, base)
    async with platforms(tmp_path / "there") as start:
        embeddings = Meanwhile("hash-2")  # not the one that made the file's vectors: passages are embedded
        running = await start("rag_exchange", "extractive_answers", embeddings, EvaluationPlugin)
        bob = await somebody(running)

        embeddings.happens = partial(delete_at_second, bob, "first.md")
        _, job = await imported(running, bob, file)
        assert job.json()["status"] == "done", job.body
        (found,) = (await bob.get("/v1/rag/evaluation/sets")).json()["items"]
        questions = (await bob.get(f"/v1/rag/evaluation/sets/{found['id']}/questions")).json()["items"]
        assert ["second" in one["question"] for one in questions] == [True]


async def test_what_is_deleted_meanwhile_stops_nothing(tmp_path: Path) -> None:
    """A document that is deleted while it is taken in is left out; those behind it come all the same."""
    async with platforms(tmp_path / "here") as start:
        running = await start("rag_exchange", "extractive_answers", HashEmbeddings())
        ann = await somebody(running)
        base = await make_base(ann, embedding_model="all-minilm")
        for name in ("first", "second", "third"):
            await ingest(running, ann, base, f"{name}.md", f"The {name} harbour was built for herring.")
        file = await exported(ann, base)
    async with platforms(tmp_path / "there") as start:
        embeddings = Meanwhile("hash-2")
        running = await start("rag_exchange", "extractive_answers", embeddings)
        bob = await somebody(running)

        embeddings.happens = partial(delete_at_second, bob, "second.md")
        _, job = await imported(running, bob, file)
        assert job.json()["status"] == "done", job.body
        (new,) = (await bob.get(BASES)).json()["items"]
        listed = (await bob.get(f"{BASES}/{new['id']}/documents")).json()["items"]
        found = [(one["filename"], one["status"], one["chunk_count"]) for one in listed]
        assert found == [("first.md", "completed", 1), ("third.md", "completed", 1)]


async def test_fields_rules_and_values_come_with_it(source: tuple[Running, Actor, str]) -> None:
    """Where they come from, too, and what was emptied by hand; accounts stay behind."""
    running, ann, _ = source
    base = await make_base(ann, name="Described", embedding_model="all-minilm")
    for name, kind in (("year", "number"), ("owner", "person")):
        assert (await ann.put(f"{BASES}/{base}/fields/{name}", json={"kind": kind})).status == 200
    rules = [{"pattern": "*.md", "field": "tags", "value": ["light"], "part": None}]
    assert (await ann.put(f"{BASES}/{base}/metadata-rules", json={"rules": rules})).status == 202
    page = "---\ntitle: Tower\nauthor: Ada\n---\n\n" + TEXTS["tower.md"]
    document = (await ingest(running, ann, base, "tower.md", page))["document_id"]
    path = f"{BASES}/{base}/documents/{document}/metadata"
    values = {"year": 1874, "owner": ann.user["id"], "author": None}
    assert (await ann.patch(path, json=values)).status == 200
    copy, job = await imported(running, ann, await exported(ann, base))
    assert job.json()["status"] == "done", job.body
    fields = (await ann.get(f"{BASES}/{copy}/fields")).json()["items"]
    assert {one["name"]: one["kind"] for one in fields if not one["built_in"]} == {
        "year": "number",
        "owner": "person",
    }
    assert (await ann.get(f"{BASES}/{copy}/metadata-rules")).json()["rules"] == rules
    (carried,) = (await ann.get(f"{BASES}/{copy}/documents")).json()["items"]
    shown = (await ann.get(f"{BASES}/{copy}/documents/{carried['document_id']}/metadata")).json()
    assert shown["metadata"] == {"year": 1874, "title": "Tower", "tags": ["light"], "language": "en"}
    assert shown["origins"] == {"year": "hand", "title": "file", "tags": "rule", "language": "file"}


@pytest.mark.parametrize("accepted", [False, True])
async def test_what_is_known_of_dates_comes_with_it(
    source: tuple[Running, Actor, str], accepted: bool
) -> None:
    """The date field, and what a text says about when it applies, accepted or only proposed."""
    running, ann, _ = source
    base = await make_base(ann, name="Dated", embedding_model="all-minilm", accept_dates=accepted)
    assert (await ann.put(f"{BASES}/{base}/fields/decided", json={"kind": "date"})).status == 200
    assert (await ann.patch(f"{BASES}/{base}", json={"date_field": "decided"})).status == 200
    await ingest(running, ann, base, "tower.md", "The tower is open.\n\nValid from 1 July 2026.\n")
    copy, job = await imported(running, ann, await exported(ann, base))
    assert job.json()["status"] == "done", job.body
    shown = (await ann.get(f"{BASES}/{copy}")).json()
    assert (shown["date_field"], shown["accept_dates"]) == ("decided", accepted)
    (carried,) = (await ann.get(f"{BASES}/{copy}/documents")).json()["items"]
    known = (await ann.get(f"{BASES}/{copy}/documents/{carried['document_id']}/metadata")).json()
    dates = {"valid_from": "2026-07-01"}
    assert known["proposals"] == ({} if accepted else dates)
    assert known["metadata"].get("valid_from") == ("2026-07-01" if accepted else None)
    assert known["origins"].get("valid_from") == ("text" if accepted else None)
