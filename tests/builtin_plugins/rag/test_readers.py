"""Documents that not everybody may read who sees their knowledge base."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from builtin_plugins.rag import api as rag
from kernel.sdk import Caller, Principal
from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import (
    ask,
    ask_raw,
    make_base,
    make_pipeline,
    path_of,
    somebody,
    upload,
)
from tests.fakes.keeping import Keeper

pytestmark = pytest.mark.asyncio(loop_scope="session")

SALARY = "The salary of the director is 9,400 EUR a month."
MENU = "On Monday the canteen serves lentil soup."


@dataclass
class Desk:
    """A shared knowledge base of Ann's: Bob may read the salaries, Ann and Eve may not."""

    running: Running
    keeper: Keeper
    ann: Actor
    bob: Actor
    eve: Actor
    base: str
    guarded: str
    plain: str

    async def names(self, actor: Actor, **query: str) -> list[str]:
        answer = await actor.get(f"/v1/rag/knowledge-bases/{self.base}/documents", params=query)
        assert answer.status == 200, answer.body
        listed = answer.json()
        assert listed["total"] == len(listed["items"])
        return sorted(one["filename"] for one in listed["items"])

    async def found(self, actor: Actor, question: str = "salary of the director", **more: Any) -> set[str]:
        path = f"/v1/rag/knowledge-bases/{self.base}/search"
        answer = await actor.post(path, json={"question": question, **more})
        assert answer.status == 200, answer.body
        return {item["document_id"] for item in answer.json()["items"]}


def account(actor: Actor) -> int:
    return int(actor.user["id"])


@pytest_asyncio.fixture(loop_scope="session")
async def desk(running: Running, ann: Actor) -> Desk:
    bob, eve = await somebody(running), await somebody(running)
    base = await make_base(ann, visibility="shared")
    keeper = Keeper(running.platform, base)
    guarded = await keeper.put("salaries.md", SALARY, keeper.readers("staff"))
    plain = await keeper.put("menu.md", MENU, None)
    await keeper.members(staff=[account(bob)])
    await running.run_jobs()
    return Desk(running, keeper, ann, bob, eve, base, guarded, plain)


async def test_a_document_is_read_by_its_readers_alone(desk: Desk) -> None:
    admin = await somebody(desk.running, role="admin")
    assert await desk.names(desk.bob) == ["menu.md", "salaries.md"]
    assert await desk.found(desk.bob) == {desk.guarded, desk.plain}
    for other in (desk.ann, desk.eve, admin):
        assert await desk.names(other) == ["menu.md"]
        assert await desk.found(other) == {desk.plain}
        assert await desk.found(other, metadata_filter={"filename": "salaries.md"}) == set()
        for rest in ("", "/content", "/chunks", "/versions", "/metadata", "/difference"):
            assert (await other.get(path_of(desk.base, desk.guarded, rest))).status == 404, rest
        assert (await other.delete(path_of(desk.base, desk.guarded))).status in (403, 404)
        shown = (await other.get(f"/v1/rag/knowledge-bases/{desk.base}")).json()
        assert shown["document_count"] == 1
    assert (await desk.ann.delete(path_of(desk.base, desk.guarded))).status == 404
    assert (await desk.bob.get(path_of(desk.base, desk.guarded, "/content"))).status == 200
    assert (await desk.bob.get(f"/v1/rag/knowledge-bases/{desk.base}")).json()["document_count"] == 2


async def test_changes_count_at_once(desk: Desk) -> None:
    keeper = desk.keeper
    assert await desk.found(desk.bob) == {desk.guarded, desk.plain}
    assert await keeper.members(staff=[account(desk.eve)]) == 1
    assert await desk.found(desk.bob) == {desk.plain}
    assert await desk.found(desk.eve) == {desk.guarded, desk.plain}
    assert await keeper.members(staff=[account(desk.eve)]) == 0

    assert await keeper.grant({"salaries.md": keeper.readers("board"), "menu.md": None, "gone": None}) == 1
    assert await desk.found(desk.eve) == {desk.plain}
    await keeper.members(board=[account(desk.ann)])
    assert await desk.found(desk.ann) == {desk.guarded, desk.plain}

    assert await keeper.grant({"salaries.md": keeper.readers(everybody=True)}) == 1
    assert await desk.found(desk.eve) == {desk.guarded, desk.plain}
    assert await keeper.drop() >= 3
    assert await desk.found(desk.eve) == await desk.found(desk.ann) == {desk.plain}
    assert await keeper.grant({"salaries.md": None}) == 1
    assert await desk.found(desk.eve) == {desk.guarded, desk.plain}


async def test_versions_and_what_is_inside_have_the_same_readers(desk: Desk) -> None:
    keeper, packed = desk.keeper, io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("inside.md", "The bonus is 700 EUR.")
        archive.writestr("menu.md", MENU)
    await keeper.put("salaries.md", SALARY + " Since May.", keeper.readers("board"))
    await keeper.put("packed.zip", packed.getvalue(), keeper.readers("staff"))
    await desk.running.run_jobs()
    assert await desk.names(desk.bob) == ["inside.md", "menu.md", "menu.md", "packed.zip"]
    assert await desk.names(desk.ann) == ["menu.md"]
    assert (await desk.bob.get(path_of(desk.base, desk.guarded))).status == 404  # its first version

    await keeper.grant({"packed.zip": keeper.readers("board"), "salaries.md": keeper.readers("staff")})
    assert await desk.names(desk.bob) == ["menu.md", "salaries.md"]
    versions = await desk.bob.get(path_of(desk.base, desk.guarded, "/versions"))
    assert [one["version"] for one in versions.json()["items"]] == [2, 1]


async def test_an_upload_does_not_tell_of_guarded_documents(desk: Desk) -> None:
    answer = await upload(desk.ann, desk.base, "salaries.md", SALARY)
    assert answer.status == 202
    assert answer.json()["document_id"] != desk.guarded
    assert answer.json()["same_name"] == []
    await desk.running.run_jobs()
    assert await desk.names(desk.ann) == ["menu.md", "salaries.md"]
    assert await desk.found(desk.ann) == {answer.json()["document_id"], desk.plain}


async def test_scores_do_not_tell_which_words_guarded_documents_have(desk: Desk) -> None:
    question, other = "Is the director in the canteen on Monday?", await make_base(desk.ann)
    await Keeper(desk.running.platform, other).put("menu.md", MENU, None)
    await desk.running.run_jobs()
    scores = []
    for base in (desk.base, other):
        path = f"/v1/rag/knowledge-bases/{base}/search"
        answer = await desk.ann.post(path, json={"question": question})
        scores.append([one["score"] for one in answer.json()["items"]])
    assert scores[0] == pytest.approx(scores[1], abs=1e-4) != []  # vectors of two texts are made together


async def test_a_period_does_not_tell_that_a_guarded_document_has_one(desk: Desk) -> None:
    await desk.running.platform.hooks.ask(
        rag.describe_document,
        caller=desk.keeper.caller,
        knowledge_base_id=desk.base,
        document_id=desk.guarded,
        metadata={"valid_from": "2020-01-01"},
    )
    path = f"/v1/rag/knowledge-bases/{desk.base}/search"
    for actor, limited in ((desk.bob, True), (desk.ann, False)):
        answer = await actor.post(path, json={"question": "What did the canteen serve in 2021?"})
        assert ("period" in answer.json()) is limited, answer.body


async def test_attachments_leave_guarded_documents_out(desk: Desk) -> None:
    """Beside a filter and alone; and after a knowledge base is no longer shared, nothing of it is asked."""
    question = "What is the salary of the director?"
    for actor in (desk.bob, desk.ann, desk.eve):
        pipeline = await make_pipeline(actor, desk.base)
        for sent in (
            {"only_attachments": True},
            {"metadata_filter": {"filename": "menu.md"}},
            {"as_of": "2020-01-01"},
        ):
            answer = await ask_raw(actor, pipeline, question, attachments=[desk.guarded], **sent)
            if actor is desk.bob:
                assert desk.guarded in {one["document_id"] for one in answer.json()["sources"]}
            else:
                assert (answer.status, answer.json()["code"]) == (404, "document_not_found")
                plain = await ask_raw(actor, pipeline, question, attachments=[desk.plain], **sent)
                assert desk.guarded.encode() not in plain.body and b"9,400" not in plain.body
    own = await make_pipeline(desk.bob, await make_base(desk.bob))
    assert (await ask_raw(desk.bob, own, question, attachments=[desk.guarded])).status == 200
    path = f"/v1/rag/knowledge-bases/{desk.base}"
    assert (await desk.ann.patch(path, json={"visibility": "private"})).status == 200
    refused = await ask_raw(desk.bob, own, question, attachments=[desk.guarded])
    assert (refused.status, refused.json()["code"]) == (404, "document_not_found")


async def test_questions_and_counts_leave_guarded_documents_out(desk: Desk) -> None:
    pipeline = await make_pipeline(desk.ann, desk.base, visibility="shared")
    for actor, count in ((desk.bob, 2), (desk.ann, 1)):
        asked = await ask(actor, pipeline, "What is the salary of the director?")
        cited = {one["document_id"] for one in asked["sources"]}
        assert (desk.guarded in cited) is (count == 2)
        assert ("9,400" in str(asked)) is (count == 2)
        path = f"/v1/rag/knowledge-bases/{desk.base}"
        facets = await actor.post(f"{path}/facets", json={"fields": ["filename"]})
        assert facets.status == 200, facets.body
        assert facets.json()["total"] == count
        assert (await actor.get(f"{path}/ingestion")).json()["completed"] == count
        table = await actor.get(f"{path}/metadata.csv")
        assert (desk.guarded in table.body.decode()) is (count == 2), table.body


async def test_jobs_do_not_tell_of_guarded_documents(desk: Desk) -> None:
    admin = await somebody(desk.running, role="admin")
    for actor, followed in ((desk.ann, 1), (admin, 1), (desk.bob, 2)):
        jobs = (await actor.get("/v1/jobs?kind=rag.ingest_document")).json()["items"]
        subjects = {desk.guarded, desk.plain} & {one["subject"] for one in jobs}
        assert len(subjects) == followed, actor.user


async def test_visitors_read_what_everybody_may(desk: Desk) -> None:
    hooks, platform = desk.running.platform.hooks, desk.running.platform
    bob = Caller(platform, Principal("user", "bob", account(desk.bob), desk.bob.user["username"]))
    ids = [desk.guarded, desk.plain]
    for caller, seen in ((bob, set(ids)), (rag.for_visitors(bob), {desk.plain})):
        entries = await hooks.ask(rag.find_documents, caller=caller, document_ids=ids)
        assert set(entries or ()) == seen
        passages = await hooks.ask(
            rag.search_passages,
            caller=caller,
            question="salary",
            top_k=5,
            knowledge_base_ids=[desk.base],
            metadata_filter=None,
        )
        assert {one.document_id for one in passages or ()} == seen


async def test_who_may_read_is_explained_to_readers(desk: Desk) -> None:
    hooks, platform = desk.running.platform.hooks, desk.running.platform
    found = await hooks.ask(
        rag.list_document_readers,
        caller=desk.keeper.caller,
        knowledge_base_id=desk.base,
        document_id=desk.guarded,
    )
    staff = rag.ReaderAccounts(desk.keeper.reader("staff"), [account(desk.bob)])
    assert found == rag.DocumentAudience(desk.keeper.holder, everybody=False, readers=[staff])

    async def unreadable() -> int | None:
        return await platform.database.read(
            lambda session: hooks.ask_now(
                rag.count_unreadable_documents,
                platform=platform,
                session=session,
                knowledge_base_id=desk.base,
                holder=desk.keeper.holder,
            )
        )

    assert await unreadable() == 0
    await desk.keeper.members(staff=[])
    assert await unreadable() == 1


async def test_names_of_readers_begin_with_their_holder(desk: Desk) -> None:
    foreign = rag.DocumentReaders(desk.keeper.holder, ["other:1:staff"])
    with pytest.raises(ValueError, match="must begin with"):
        await desk.keeper.grant({"menu.md": foreign})
