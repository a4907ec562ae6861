"""Values of fields that a model proposes: shown, accepted or rejected by a person, never used before."""

from __future__ import annotations

import json
from collections.abc import Sequence

from builtin_plugins.inference import api as inference
from kernel.testing import Actor, Running, Start
from tests.builtin_plugins.rag.rag_support import make_base, path_of, record, somebody
from tests.builtin_plugins.rag.test_metadata import declare, send
from tests.builtin_plugins.rag.test_versions import placed, put
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.saying_model import SayingModel

SAID = {"city": "Bergen", "parties": ["Ada", "Bo"], "rent": "much", "tags": ["lease"], "owner": 1}


class Reader(SayingModel):
    """A model that says the same of each text; `asked` are the requests, one for each text."""

    name = "reader"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def say(self, messages: Sequence[inference.ChatMessage]) -> str:
        """See `SayingModel`."""
        self.asked.append(messages[-1].content)
        return f"Here it is:\n{json.dumps(SAID)}"


async def boot(start: Start, *plugins: object) -> tuple[Running, Actor, str]:
    running = await start("extractive_answers", HashEmbeddings(), *plugins)
    ann = await somebody(running)
    return running, ann, await make_base(ann, accept_dates=True)


async def count_of(actor: Actor, base: str, city: str) -> int:
    """How many documents a filter finds."""
    query = {"filter": json.dumps({"city": city})}
    listed = await actor.get(f"/v1/rag/knowledge-bases/{base}/documents", params=query)
    return int(listed.json()["total"])


async def test_a_model_proposes_and_a_person_accepts(start_platform: Start) -> None:
    model = Reader()
    running, ann, base = await boot(start_platform, model)
    await placed(running, await send(ann, base))
    assert model.asked == []  # no field asks for it
    for name, kind, many in (
        ("parties", "text", True),
        ("rent", "number", False),
        ("owner", "person", False),
    ):
        assert (await declare(ann, base, name, kind, many=many, propose=True)).json()["propose"] is True
    await declare(ann, base, "city", propose=True)
    await declare(ann, base, "note")
    await running.run_jobs()  # for the document that is there
    first = await placed(running, await put(ann, base, "b.md", "# Lease\n\nThe tenants are Ada and Bo.\n"))
    place = path_of(base, first["document_id"], "/metadata")
    shown = (await ann.get(place)).json()
    assert shown["proposals"] == {"city": "Bergen", "parties": ["Ada", "Bo"]}
    assert not {"city", "parties", "tags"} & {*shown["metadata"]} and await count_of(ann, base, "Bergen") == 0
    times = len(model.asked)
    assert all("note" not in one and "owner" not in one for one in model.asked)
    accepted = (await ann.patch(place, json={"city": "Bergen", "parties": None})).json()
    assert (accepted["proposals"], accepted["origins"]["city"]) == ({}, "hand")
    assert await count_of(ann, base, "Bergen") == 1
    next_one = await placed(running, await put(ann, base, "b.md", "# Lease\n\nThe tenants are Ada and Cy.\n"))
    later = (await ann.get(path_of(base, next_one["document_id"], "/metadata"))).json()
    assert (later["metadata"]["city"], later["proposals"]) == ("Bergen", {})  # as accepted, and as rejected
    assert len(model.asked) == times + 1  # about the rent
    await declare(ann, base, "city")
    await declare(ann, base, "city", propose=True)
    await running.run_jobs()
    assert len(model.asked) == times + 2  # about the other document again, whose proposal was removed


async def test_nothing_happens_without_a_model(start_platform: Start) -> None:
    running, ann, base = await boot(start_platform)
    await declare(ann, base, "city", propose=True)
    document = await placed(running, await send(ann, base))
    assert (await record(ann, base, document["document_id"]))["status"] == "completed"
    shown = (await ann.get(path_of(base, document["document_id"], "/metadata"))).json()
    assert (shown["proposals"], shown["metadata"].get("city")) == ({}, None)
