"""Sets: files of both kinds, questions made from documents, and who sees what."""

from __future__ import annotations

import threading

import pytest

from builtin_plugins.evaluation.schemas import QuestionIn
from builtin_plugins.evaluation.services.generating import make_questions
from builtin_plugins.rag import api as rag
from kernel.testing import Start
from tests.builtin_plugins.evaluation.evaluation_support import (
    API,
    boot,
    call,
    make_set,
    measure,
    nordlys,
)
from tests.builtin_plugins.rag.rag_support import NOWHERE, make_base, somebody
from tests.fakes.keeping import Keeper

CSV = "question,documents,answers,unanswerable\nHow much?,a.md|b.md,42 EUR|forty-two,\nWho?,,,yes\n"
JSONL = (
    b'\xef\xbb\xbf{"question": "How much?", "answers": "42 EUR"}\n\n'
    b'{"question": "Who?", "unanswerable": true}\n'
)


async def test_files(start_platform: Start) -> None:
    """JSON Lines and CSV; the same question twice is one; what is wrong is named with its line."""
    running = await boot(start_platform)
    ann = await somebody(running)
    base = await make_base(ann, embedding_model="all-minilm")
    set_id = await make_set(ann, base, [{"question": "Why?", "unanswerable": True}])
    path = f"/sets/{set_id}/upload"
    csv, jsonl = {"Content-Type": "text/csv"}, {"Content-Type": "application/jsonl"}
    assert (await call(ann, "post", path, data=CSV.encode(), headers=csv))["added"] == 2
    assert (await call(ann, "post", path, data=JSONL, headers=jsonl)) == {"added": 0, "question_count": 3}
    found = (await call(ann, "get", f"/sets/{set_id}/questions"))["items"]
    assert [one["question"] for one in found] == ["Why?", "How much?", "Who?"]
    assert (found[1]["documents"], found[1]["answers"]) == (["a.md", "b.md"], ["42 EUR", "forty-two"])
    wrong = {
        b'{"question": "x"}': "Line 1",
        b'{"question": "x", "answers": ["a"]}\n{oops': "Line 2 is not JSON",
        b'{"question": "x", "answer": "a", "answers": ["a"]}': "answer",
        b"\xff\xfe": "UTF-8",
        b"": "no questions",
        b"[" * 50_000: "Line 1 is not JSON",
    }
    for data, text in wrong.items():
        refused = await ann.post(API + path, data=data, headers=jsonl)
        assert refused.status == 400 and text in refused.json()["detail"], (data[:50], refused.body)
    assert (await ann.post(API + path, data=b"{}", headers={"Content-Type": "text/html"})).status == 415


async def test_a_large_file(start_platform: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read beside the event loop, and what would take too long to read is refused."""
    running = await boot(start_platform)
    ann = await somebody(running)
    path = f"{API}/sets/{await make_set(ann, await make_base(ann), [])}/upload"
    threads = []

    def noted(entry: object) -> QuestionIn:
        threads.append(threading.current_thread())
        return validate(entry)

    validate = QuestionIn.model_validate
    monkeypatch.setattr(QuestionIn, "model_validate", noted)
    for kind, data in {"text/csv": CSV.encode(), "application/jsonl": JSONL}.items():
        threads.clear()
        added = await ann.post(path, data=data, headers={"Content-Type": kind})
        assert added.status == 200 and len(threads) == 2
        assert threading.current_thread() not in threads
    many = b'{"question": [%s0]}' % (b"[]," * 1_000_000)
    refused = await ann.post(path, data=many, headers={"Content-Type": "application/jsonl"})
    assert refused.status == 413 and "values" in refused.json()["detail"]


async def test_generated(start_platform: Start) -> None:
    """Headings, definitions and figures of the documents, marked as generated, each once."""
    running = await boot(start_platform)
    ann, base = await nordlys(running)
    set_id = await make_set(ann, base, [{"question": "Why?", "unanswerable": True}])
    made = await call(ann, "post", f"/sets/{set_id}/generate", json={"limit": 200})
    found = (await call(ann, "get", f"/sets/{set_id}/questions", params={"limit": 500}))["items"]
    by_text = {one["question"]: one for one in found[1:]}
    assert made["added"] == len(by_text) >= 12
    assert {one["origin"] for one in by_text.values()} == {"generated"}
    assert by_text["What is the daily allowance for meals?"]["answers"] == ["42"]
    assert "What does travel say about Hotels?" in by_text
    assert any("riometer" in text for text in by_text)
    assert all(one["passages"] for one in by_text.values())
    assert (await call(ann, "post", f"/sets/{set_id}/generate", json={"limit": 200}))["added"] == 0


def test_rows_of_numbers() -> None:
    """Decimals belong to their sentence; a row of them without an end is passed over at once (trying each
    way to divide it would never end).
    """
    row = "Revenue in million euro " + "1,1 2.2 " * 1_000
    text = f"{row}\n\nThe allowance for meals is 42.50 euro a day, in 3.5 parts. {row}"
    passage = rag.Passage(text, "", 0.0, "p", "d", char_end=len(text))
    [made] = make_questions("d", "travel.md", [passage])
    assert (made.question, made.answers) == ("What is the allowance for meals?", ("42.50",))


async def test_questions_from_documents_that_one_may_not_read(start_platform: Start) -> None:
    """They are for the document's readers, with their results; others neither see nor count them."""
    running = await boot(start_platform)
    ann, bob = await somebody(running), await somebody(running)
    base = await make_base(ann, embedding_model="all-minilm", visibility="shared")
    keeper = Keeper(running.platform, base)
    await keeper.put("bonus.md", "# Bonus of the director\n\nIt is 7,700 EUR.", keeper.readers("board"))
    await keeper.members(board=[ann.user["id"]])
    await running.run_jobs()
    set_id = await make_set(ann, base, [{"question": "Who is Berit?", "unanswerable": True}])
    assert (await call(ann, "post", f"/sets/{set_id}/generate", json={"limit": 9}))["added"] == 1
    run = await measure(running, ann, set_id)
    for actor, count in ((ann, 2), (bob, 1)):
        for path in (f"/sets/{set_id}/questions", f"/runs/{run['id']}/results?configuration=0"):
            found = await call(actor, "get", path)
            assert found["total"] == len(found["items"]) == count
        assert (await call(actor, "get", f"/sets/{set_id}"))["question_count"] == count
        shown = await call(actor, "get", f"/runs/{run['id']}")
        [listed] = (await call(actor, "get", "/runs"))["items"]
        assert (shown["done"], listed["done"], shown["total"], listed["total"]) == (count,) * 4
        assert shown["summaries"][0]["measures"]["model_calls"]["questions"] == count


async def test_who_may(start_platform: Start) -> None:
    """Who sees the knowledge base reads its sets; only its owner changes them; to others they are unknown."""
    running = await boot(start_platform)
    ann, base = await nordlys(running)
    set_id = await make_set(ann, base)
    bob = await somebody(running)
    body = {"knowledge_base_id": base, "name": "Bob's"}
    assert (await bob.get(f"{API}/sets/{set_id}")).status == 404
    assert (await bob.post(f"{API}/sets", json=body)).status == 404
    assert (await bob.get(f"{API}/sets")).json()["items"] == []
    shared = await ann.patch(f"/v1/rag/knowledge-bases/{base}", json={"visibility": "shared"})
    assert shared.status == 200
    assert (await bob.get(f"{API}/sets/{set_id}")).status == 200
    assert (await bob.post(f"{API}/sets", json=body)).status == 403
    assert (await bob.delete(f"{API}/sets/{set_id}")).status == 403
    assert (await ann.post(f"{API}/sets", json=body | {"knowledge_base_id": NOWHERE})).status == 404
    one = (await call(ann, "get", f"/sets/{set_id}/questions"))["items"][0]["id"]
    assert (await bob.delete(f"{API}/sets/{set_id}/questions/{one}")).status == 403
    assert (await ann.delete(f"{API}/sets/{set_id}/questions/{one}")).status == 204
    assert (await ann.delete(f"{API}/sets/{set_id}/questions/{one}")).status == 404
    assert (await ann.delete(f"{API}/sets/{set_id}")).status == 204
    assert (await ann.get(f"{API}/sets/{set_id}")).status == 404


@pytest.mark.parametrize(
    "question",
    [{"question": "x"}, {"question": "x", "answers": ["a"], "unanswerable": True}, {"question": " "}],
)
async def test_a_question_expects_something(start_platform: Start, question: dict[str, object]) -> None:
    running = await boot(start_platform)
    ann = await somebody(running)
    base = await make_base(ann, embedding_model="all-minilm")
    body = {"knowledge_base_id": base, "name": "x", "questions": [question]}
    assert (await ann.post(f"{API}/sets", json=body)).status == 422
