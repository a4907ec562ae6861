"""What several documents say alike counts once: e-mails that quote each other, files stored twice."""

from __future__ import annotations

import pytest

from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import ask, ingest, make_base, make_pipeline, somebody

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = "Which code opens the boathouse in Lervik?"
ANSWER = "5531"
SAID = (
    "Hello all,\n\nthe boathouse in Lervik has a new lock since Monday. The code that opens it is 5531.\n"
    "Please keep it to yourselves, and close the shutters when you leave in the evening.\n\nRegards\nAnn",
    "Thanks, Ann. I will take the two kayaks to Lervik on Friday and bring the life jackets for the\n"
    "children. Does anybody need a ride?\n\nBen",
    "I do! From the station at half past eight, if that suits you. The tent goes into the trailer, and\n"
    "so does the cooking gear.\n\nCarla",
    "Half past eight is fine. The forecast promises sun on Saturday and wind from the west on Sunday.\n\nBen",
    "Then we paddle to the islands on Saturday, as they lie in the open fjord. I have asked the harbor\n"
    "master for permission to camp there.\n\nDag",
    "Wonderful. Whoever comes by train gets a ticket for the ferry from me; tell me how many we are.\n\nEva",
)
OTHERS = {
    "rent.txt": "The rent of the club's rooms rises to 900 euro a month. The board agreed in March.",
    "ferry.txt": "The ferry to the islands leaves at nine and returns at six. Bicycles travel free.",
    "kitchen.txt": "The kitchen of the clubhouse was painted. A code of conduct hangs beside the door.",
    "mooring.txt": "Boats moor at the eastern pier in Lervik. Guests pay 12 euro a night for each boat.",
}


def mail(number: int, style: str) -> bytes:
    """The e-mail of a thread, above all that was written before."""
    head = f"Subject: Lervik\nFrom: m{number}@example.org\nDate: {_date(number)}\n"
    return f"{head}\n{_text(number, style)}\n".encode()


def _date(number: int) -> str:
    return f"Tue, 0{number + 1} Jun 2026 10:00:00 +0200"


def _text(number: int, style: str) -> str:
    if not number:
        return SAID[0]
    earlier = _text(number - 1, style)
    if style == "outlook":
        sent = f"From: m{number - 1}@example.org\nSent: {_date(number - 1)}\nTo: club\nSubject: Lervik"
        return f"{SAID[number]}\n\n-----Original Message-----\n{sent}\n\n{earlier}"
    quoted = "\n".join(f"> {line}".rstrip() for line in earlier.split("\n"))
    return f"{SAID[number]}\n\nOn {_date(number - 1)}, m{number - 1}@example.org wrote:\n{quoted}"


async def shelf(running: Running, mails: int, style: str) -> tuple[Actor, str, str]:
    """A knowledge base with the first e-mails of the thread and other documents, and its pipeline."""
    ann = await somebody(running)
    base = await make_base(ann)
    for name, text in OTHERS.items():
        await ingest(running, ann, base, name, text)
    for number in range(mails):
        await ingest(running, ann, base, f"lervik-{number}.eml", mail(number, style))
    return ann, base, await make_pipeline(ann, base)


async def search_hits(ann: Actor, base: str, **fields: object) -> list[dict[str, str]]:
    path = f"/v1/rag/knowledge-bases/{base}/search"
    answer = await ann.post(path, json={"question": QUESTION, "top_k": 5, **fields})
    assert answer.status == 200, answer.body
    return list(answer.json()["items"])


@pytest.mark.long
@pytest.mark.parametrize("style", ["marks", "outlook"])
async def test_a_thread_in_files_of_its_own(running: Running, style: str) -> None:
    """Six e-mails that quote all before them answer as well as the first alone, and leave room for others."""
    ann, _, alone = await shelf(running, 1, style)
    first = await ask(ann, alone, QUESTION)
    ben, base, pipeline = await shelf(running, len(SAID), style)
    answer = await ask(ben, pipeline, QUESTION)
    for one in (first, answer):
        assert ANSWER in one["answer"] and "[1]" in one["answer"]
        assert one["sources"][0]["source"].startswith("lervik-"), one["sources"][0]
    assert answer["confidence"] >= first["confidence"] - 0.1
    items = await search_hits(ben, base)
    saying = [item for item in items if ANSWER in item["text"]]
    assert len(items) == 5 and len(saying) <= 2, [item["text"][:80] for item in items]


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, {"rerank": True}, {"hybrid": False}, {"top_k": 1}])
async def test_a_file_that_was_stored_often(running: Running, options: dict[str, object]) -> None:
    """Twelve names for one text are one hit; another amount is another text."""
    ann = await somebody(running)
    base = await make_base(ann)
    text = "The code of the boathouse in Lervik is {}. " + SAID[1].replace("\n", " ")
    for number in range(12):
        await ingest(running, ann, base, f"copy-{number}.md", text.format(5531) + "\n" * number)
    await ingest(running, ann, base, "old.md", text.format(4420))
    for name, other in OTHERS.items():
        await ingest(running, ann, base, name, other)
    texts = [item["text"] for item in await search_hits(ann, base, **options)]
    assert len(texts) == len(set(texts)) == options.get("top_k", 5)
    if len(texts) > 1:
        assert any("4420" in one for one in texts) and any("5531" in one for one in texts)


async def test_a_copy_that_is_deleted(running: Running) -> None:
    """The others stand in for it at once."""
    ann = await somebody(running)
    base = await make_base(ann)
    text = "The code of the boathouse in Lervik is 5531. " + SAID[1].replace("\n", " ")
    made = [await ingest(running, ann, base, f"copy-{number}.md", text + " " * number) for number in range(3)]
    for one in made[:2]:
        (item,) = await search_hits(ann, base)
        assert item["text"] == text
        path = f"/v1/rag/knowledge-bases/{base}/documents/{item['document_id']}"
        assert (await ann.delete(path)).status in (200, 202, 204), one
        await running.run_jobs()
    assert len(await search_hits(ann, base)) == 1


async def test_names_that_the_question_asks_for(running: Running) -> None:
    """The same rules for two towns are no copies to somebody who names both."""
    ann = await somebody(running)
    base = await make_base(ann)
    text = "The code of the boathouse is 5531. " + SAID[1].replace("\n", " ")
    for number, name in enumerate(("oslo.md", "bergen.md", "lervik.md")):
        await ingest(running, ann, base, name, text + " " * number)
    found_in = {}
    for question in (
        "Which code opens the boathouses?",
        "Which code opens the boathouses in Oslo and Bergen?",
    ):
        path = f"/v1/rag/knowledge-bases/{base}/search"
        items = (await ann.post(path, json={"question": question})).json()["items"]
        found_in[question] = sorted(item["source"] for item in items)
    one, both = found_in.values()
    assert len(one) == 1 and both == ["bergen.md", "oslo.md"]


BODY = " ".join("".join(SAID[1:3]).split())
TITLE = "Which code opens the boathouse in Lervik"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"{TITLE}\n{BODY}\nCode: 55312", f"{BODY}\nCode: 5531"),
        (f"{TITLE}\n{BODY}\nCode: 5531.5", f"{BODY}\nCode: 5531"),
        (
            f"{TITLE}\n{BODY}\nCode: 4420\nValid in summer\nCode: 5531\nValid in summer",
            f"{BODY}\nCode: 5531\nValid in summer",
        ),
        (f"{TITLE}\n{BODY}\nDoor 1\t25\nGate\t7", f"{BODY}\nDoor\t125\nGate\t7"),
        (f"{TITLE}\nDate: 1 May 2026\nTo: all\n{BODY}", f"Date: 1 June 2026\nTo: all\n{BODY}"),
    ],
    ids=["longer", "more exact", "elsewhere", "other columns", "another date"],
)
async def test_amounts_that_only_look_alike(running: Running, one: str, other: str) -> None:
    """A text is a copy only if all of it is in the other, without gaps and to the end of its numbers."""
    ann = await somebody(running)
    base = await make_base(ann)
    await ingest(running, ann, base, "1.txt", one)
    await ingest(running, ann, base, "2.txt", other)
    assert sorted(item["source"] for item in await search_hits(ann, base)) == ["1.txt", "2.txt"]
