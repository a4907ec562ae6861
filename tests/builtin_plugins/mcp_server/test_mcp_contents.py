"""What the MCP server offers: the caller's tools, its passages, its documents, and nobody else's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernel.testing import Actor, Running
from tests.builtin_plugins.documents.sample_documents import pdf
from tests.builtin_plugins.mcp_server.mcp_support import LEGACY, MODERN, Peer, program
from tests.builtin_plugins.rag.rag_support import ingest, make_base, make_pipeline, somebody

pytestmark = pytest.mark.asyncio(loop_scope="session")

ERAS = pytest.mark.parametrize("version", [MODERN, LEGACY])
TREASURE = "# Harbour\n\nThe treasure of the harbour is a chest of silver coins.\n"


async def owner_of_a_library(mcp: Running) -> tuple[Actor, str, str]:
    owner = await somebody(mcp)
    base = await make_base(owner)
    document = await ingest(mcp, owner, base, "harbour.md", TREASURE)
    assert document["status"] == "completed", document
    await make_pipeline(owner, base, name="Harbour")
    return owner, base, document["document_id"]


@ERAS
async def test_tools(mcp: Running, version: str) -> None:
    """The tools of the caller in a steady order, each with what a call does."""
    owner, _, _ = await owner_of_a_library(mcp)
    client = Peer(await program(owner), version)
    tools = (await client.ask("tools/list"))["tools"]
    names = [tool["name"] for tool in tools]
    assert names[0] == "search"
    assert names[1:] == sorted(names[1:])
    assert {"ask_harbour", "workshop_weather", "workshop_erase"} <= set(names)
    hints = {tool["name"]: tool["annotations"] for tool in tools}
    assert hints["workshop_weather"]["readOnlyHint"] is True
    assert hints["workshop_erase"]["destructiveHint"] is True
    assert hints["search"] == hints["ask_harbour"]
    assert "x-mcp-header" not in str(tools)
    assert (await client.ask("tools/list"))["tools"] == tools
    other = Peer(await program(await somebody(mcp)), version)
    assert "ask_harbour" not in str(await other.ask("tools/list"))
    unknown = await other.refused(
        "tools/call",
        400 if version == MODERN else 200,
        -32602,
        name="ask_harbour",
        arguments={"question": "?"},
    )
    assert "Unknown tool" in unknown["message"]


@ERAS
async def test_calls(mcp: Running, version: str) -> None:
    """A call returns text and data; the model gets refusals and failures, without secrets."""
    owner = await somebody(mcp)
    client = Peer(await program(owner), version)
    found = await client.ask("tools/call", name="workshop_weather", arguments={"city": "Oslo", "days": 2})
    assert found["structuredContent"]["result"] == {"city": "Oslo", "days": 2, "for": owner.user["username"]}
    assert "Oslo" in found["content"][0]["text"]
    for name, arguments, said in (
        ("workshop_weather", {}, "'city'"),
        ("workshop_weather", {"city": "Oslo", "x": 1}, "There is no argument 'x'"),
        ("workshop_weather", {"city": "a\0b"}, "'city': contains a NUL character"),
        ("workshop_refuse", {}, "the shop is closed"),
    ):
        refused = await client.ask("tools/call", name=name, arguments=arguments)
        assert refused["isError"] is True
        assert said in refused["content"][0]["text"]
    odd = await client.send("tools/call", name="workshop_weather", arguments={"city": "Nowhere"})
    assert b'"degrees": null' in odd.body and b"NaN" not in odd.body
    failed = await client.send("tools/call", name="workshop_crash", arguments={})
    assert "hunter2" not in failed.body.decode()


@ERAS
async def test_search_and_open(mcp: Running, version: str) -> None:
    owner, base, document = await owner_of_a_library(mcp)
    client = Peer(await program(owner, "ask"), version)
    found = await client.ask("tools/call", name="search", arguments={"query": "treasure of the harbour"})
    best = found["structuredContent"]["passages"][0]
    assert (best["source"], "silver coins" in best["text"]) == ("harbour.md", True)
    (passage,) = (await client.ask("resources/read", uri=best["uri"]))["contents"]
    assert passage["text"] == best["text"]
    (listed,) = (await client.ask("resources/list"))["resources"]
    assert listed["uri"] == f"platform://knowledge-bases/{base}/documents/{document}"
    (whole,) = (await client.ask("resources/read", uri=listed["uri"]))["contents"]
    assert "silver coins" in whole["text"]
    templates = (await client.ask("resources/templates/list"))["resourceTemplates"]
    assert [item["name"] for item in templates] == ["document", "passage"]
    named: dict[str, Any] = {"query": "treasure", "knowledge_base_ids": [base], "top_k": 1}
    for wanted, count in ((None, 1), ({"document_id": document}, 1), ({"document_id": "no-such"}, 0)):
        arguments = named if wanted is None else {**named, "metadata_filter": wanted}
        found = await client.ask("tools/call", name="search", arguments=arguments)
        assert len(found["structuredContent"]["passages"]) == count
    found = await client.ask("tools/call", name="search", arguments={**named, "as_of": "2020-01-01"})
    assert found["structuredContent"]["passages"] == []


async def test_pages(mcp: Running, tmp_path: Path) -> None:
    """A passage that a search finds has its first page and its last, a citation that of its sentence."""
    owner = await somebody(mcp)
    base = await make_base(owner)
    lines = ["The harbour has two piers.", "The treasure of the harbour is a chest of silver coins."]
    file = pdf(tmp_path / "harbour.pdf", [[line] for line in lines])
    await ingest(mcp, owner, base, file.name, file.read_bytes())
    await make_pipeline(owner, base, name="Harbour")
    client = Peer(await program(owner), MODERN)
    found = await client.ask("tools/call", name="search", arguments={"query": "treasure of the harbour"})
    (passage,) = found["structuredContent"]["passages"]
    assert (passage["page"], passage["last_page"]) == (1, 2)
    asked = {"question": "What is the treasure of the harbour?"}
    answer = await client.ask("tools/call", name="ask_harbour", arguments=asked)
    assert [source["page"] for source in answer["structuredContent"]["sources"]] == [2]


@ERAS
async def test_ask(mcp: Running, version: str) -> None:
    """A pipeline answers with citations that can be opened."""
    owner, _, _ = await owner_of_a_library(mcp)
    client = Peer(await program(owner, "ask"), version)
    question = {"question": "What is the treasure of the harbour?"}
    found = await client.ask("tools/call", name="ask_harbour", arguments=question)
    text, *links = found["content"]
    assert "silver coins" in text["text"]
    assert [link["type"] for link in links] == ["resource_link"] * len(links)
    (opened,) = (await client.ask("resources/read", uri=links[0]["uri"]))["contents"]
    assert "silver coins" in opened["text"]


@ERAS
async def test_things_of_others(mcp: Running, version: str) -> None:
    """Another's document is not listed, not found and, by its URI, like one that never was."""
    owner, base, document = await owner_of_a_library(mcp)
    passages = await Peer(await program(owner)).ask(
        "tools/call", name="search", arguments={"query": "treasure"}
    )
    stranger = Peer(await program(await somebody(mcp)), version)
    assert (await stranger.ask("resources/list"))["resources"] == []
    found = await stranger.ask("tools/call", name="search", arguments={"query": "treasure of the harbour"})
    assert found["structuredContent"]["passages"] == []
    theirs: dict[str, Any] = {"query": "treasure", "knowledge_base_ids": [base]}
    refused = await stranger.ask("tools/call", name="search", arguments=theirs)
    nowhere = {**theirs, "knowledge_base_ids": ["00000000-0000-4000-8000-000000000000"]}
    assert refused == await stranger.ask("tools/call", name="search", arguments=nowhere)
    status, code = (400, -32602) if version == MODERN else (200, -32002)
    for uri in (
        f"platform://knowledge-bases/{base}/documents/{document}",
        passages["structuredContent"]["passages"][0]["uri"],
        "platform://knowledge-bases/x/documents/y",
        "file:///etc/passwd",
    ):
        error = await stranger.refused("resources/read", status, code, uri=uri)
        assert error["data"] == {"uri": uri}


async def test_scopes(mcp: Running) -> None:
    """A token shows and runs what its scopes open: asking, or tools. For more, OAuth clients sign in anew."""
    owner, base, document = await owner_of_a_library(mcp)
    asks, tools = Peer(await program(owner, "ask")), Peer(await program(owner, "tools"))
    shown = {name: await names(client) for name, client in (("ask", asks), ("tools", tools))}
    assert shown["ask"] == {"search", "ask_harbour"}
    assert "workshop_weather" in shown["tools"]
    assert not shown["tools"] & shown["ask"]
    await asks.refused("tools/call", 400, -32602, name="workshop_weather", arguments={"city": "Oslo"})
    await tools.refused("tools/call", 400, -32602, name="search", arguments={"query": "x"})
    uri = f"platform://knowledge-bases/{base}/documents/{document}"
    await tools.refused("resources/read", 403, 403, uri=uri)
    for version in (MODERN, LEGACY):
        reply = await Peer(tools.actor, version).send("resources/list")
        assert (reply.status, reply.json()["error"]["data"]) == (403, {"code": "token_scope_missing"})
        challenge = reply.headers["WWW-Authenticate"]
        assert challenge.startswith('Bearer error="insufficient_scope", resource_metadata="http')
        assert challenge.endswith('/.well-known/oauth-protected-resource/mcp", scope="ask tools"')


async def names(client: Peer) -> set[str]:
    return {tool["name"] for tool in (await client.ask("tools/list"))["tools"]}


async def test_pages_of_documents(mcp: Running) -> None:
    owner = await somebody(mcp)
    base = await make_base(owner)
    for number in range(51):
        answer = await owner.upload(
            f"/v1/rag/knowledge-bases/{base}/upload", f"{number}.md", f"Number {number}".encode()
        )
        assert answer.status == 202
    await mcp.run_jobs()
    client = Peer(await program(owner))
    first = await client.ask("resources/list")
    second = await client.ask("resources/list", cursor=first["nextCursor"])
    assert (len(first["resources"]), len(second["resources"])) == (50, 1)
    assert "nextCursor" not in second
    for wrong in ("x", "-1", "9" * 30):
        await client.refused("resources/list", 400, -32602, cursor=wrong)
    await client.refused("tools/list", 400, -32602, cursor="1")
