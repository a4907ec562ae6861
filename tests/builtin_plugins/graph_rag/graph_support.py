"""What the tests share: texts, and a shelf of calls."""

from __future__ import annotations

from typing import Any

from kernel.testing import Actor, Reply, Running

API = "/v1/graph-rag"
INSTITUTE = (
    "Dr. Ada Lindqvist leads the Nordlys Research Institute (NRI) in Tromsø. "
    "Lindqvist founded the Senja Station with Jonas Berg."
)
STATION = "The Senja Station sends its measurements to the NRI. Jonas Berg repairs the Aurora Sensor."


async def construct(actor: Actor, document_id: str, text: str, **fields: object) -> dict[str, Any]:
    """Build the graph of a text of the actor's own."""
    body = {"document_id": document_id, "text": text, **fields}
    answer = await actor.post(f"{API}/construct-graph", json=body)
    assert answer.status == 200, answer.body
    return dict(answer.json())


async def call(actor: Actor, path: str, **body: object) -> dict[str, Any]:
    """POST and read the answer, which must be good."""
    answer = await actor.post(f"{API}/{path}", json=body)
    assert answer.status == 200, answer.body
    return dict(answer.json())


async def stats(actor: Actor) -> dict[str, Any]:
    """The counts that the actor sees."""
    answer = await actor.get(f"{API}/graph/stats")
    assert answer.status == 200, answer.body
    return dict(answer.json())


async def documents(actor: Actor) -> list[str]:
    """The documents with a graph that the actor sees, newest first."""
    answer = await actor.get(f"{API}/graph/documents")
    assert answer.status == 200, answer.body
    found = answer.json()
    assert found["count"] == len(found["documents"])
    return [str(one["id"]) for one in found["documents"]]


def names(answer: dict[str, Any], field: str = "entities") -> list[str]:
    """The names in an answer."""
    return [str(one["text"]) for one in answer[field]]


async def make_base(actor: Actor, **fields: object) -> str:
    """A knowledge base; returns its id."""
    answer = await actor.post("/v1/rag/knowledge-bases", json={"name": "Nordlys", **fields})
    assert answer.status == 200, answer.body
    return str(answer.json()["id"])


async def switch(actor: Actor, base: str, wanted: bool) -> Reply:
    """Ask for the graph of a knowledge base, or for none."""
    return await actor.patch(f"/v1/rag/knowledge-bases/{base}", json={"graph": wanted})


async def ingest(running: Running, actor: Actor, base: str, name: str, text: str) -> str:
    """Upload a document and do what the worker does; returns its id."""
    uploaded = await actor.upload(f"/v1/rag/knowledge-bases/{base}/upload", name, text.encode())
    assert uploaded.status == 202, uploaded.body
    await running.run_jobs()
    return str(uploaded.json()["document_id"])
