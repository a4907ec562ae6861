"""What the tests over HTTP share: a shelf of calls, and a plugin that puts accounts into teams."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from builtin_plugins.inference.api import Embedded
from kernel.sdk import Plugin, Principal, Scope, hookimpl
from kernel.testing import Actor, Reply, Running
from kernel.testing import somebody as somebody
from tests.fakes.hash_embeddings import HashEmbeddings

HANDBOOK = """# Travel handbook

Employees book trains in second class. The daily allowance for meals is 42 EUR.

## Hotels

A hotel may cost up to 130 EUR a night. Breakfast is paid by the company.
"""
NOWHERE = "00000000-0000-4000-8000-000000000000"
NUL = pytest.param("%00", marks=pytest.mark.own_installation)
"""A malformed id that nginx, in front of several machines, refuses by itself."""


@dataclass
class Memberships(Plugin):
    """Puts accounts into `teams` and `orgs`, by user name."""

    name = "memberships"
    teams: dict[str, list[int]] = field(default_factory=dict)
    orgs: dict[str, list[int]] = field(default_factory=dict)

    @hookimpl
    def find_scope(self, principal: Principal) -> Scope:
        name = principal.username
        return Scope(principal.id, tuple(self.teams.get(name, ())), tuple(self.orgs.get(name, ())))


async def member(
    running: Running, members: Memberships, teams: Sequence[int] = (), orgs: Sequence[int] = (), **user: Any
) -> Actor:
    """A new account that is in these teams and organizations."""
    name = f"member-{secrets.token_hex(4)}"
    members.teams[name], members.orgs[name] = list(teams), list(orgs)
    return await running.user(name, **user)


def fresh_id() -> int:
    """A team or organization that no other test uses."""
    return secrets.randbelow(2**30) + 1


async def make_base(actor: Actor, **fields: object) -> str:
    """A knowledge base; returns its id."""
    answer = await actor.post("/v1/rag/knowledge-bases", json={"name": "Handbook", **fields})
    assert answer.status == 200, answer.body
    return str(answer.json()["id"])


async def make_pipeline(actor: Actor, *bases: str, **fields: object) -> str:
    """A pipeline; returns its id."""
    body = {"name": "Ask", "knowledge_base_ids": list(bases), **fields}
    answer = await actor.post("/v1/rag/pipeline", json=body)
    assert answer.status == 200, answer.body
    return str(answer.json()["pipeline_id"])


async def upload(
    actor: Actor, base: str, name: str = "handbook.md", content: bytes | str = HANDBOOK
) -> Reply:
    """Upload one file."""
    data = content.encode() if isinstance(content, str) else content
    return await actor.upload(f"/v1/rag/knowledge-bases/{base}/upload", name, data)


async def ingest(running: Running, actor: Actor, base: str, *args: Any) -> dict[str, Any]:
    """Upload one file and run its ingestion; returns its record."""
    answer = await upload(actor, base, *args)
    assert answer.status == 202, answer.body
    await running.run_jobs()
    return await record(actor, base, answer.json()["document_id"])


async def record(actor: Actor, base: str, document: str) -> dict[str, Any]:
    """The record of a document."""
    answer = await actor.get(path_of(base, document))
    assert answer.status == 200, answer.body
    return dict(answer.json())


async def settled(actor: Actor, base: str, document: str) -> dict[str, Any]:
    """The record of a document once somebody else has ingested it."""
    async with asyncio.timeout(30):
        while (found := await record(actor, base, document))["status"] == "processing":  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return found


async def ask(actor: Actor, pipeline: str, question: str, **fields: object) -> dict[str, Any]:
    """The answer to a question."""
    answer = await ask_raw(actor, pipeline, question, **fields)
    assert answer.status == 200, answer.body
    return dict(answer.json())


async def ask_raw(actor: Actor, pipeline: str, question: object, **fields: object) -> Reply:
    """Whatever asking answers."""
    return await actor.post(f"/v1/rag/pipeline/{pipeline}/query", json={"question": question, **fields})


def path_of(base: str, document: str, rest: str = "") -> str:
    """Where a document is."""
    return f"/v1/rag/knowledge-bases/{base}/documents/{document}{rest}"


def problems(answer: Reply) -> dict[str, str]:
    """The messages of a 422 by their places."""
    assert answer.status == 422, (answer.status, answer.body)
    found: Sequence[Mapping[str, Any]] = answer.json()["detail"]
    return {".".join(str(part) for part in item["loc"]): item["msg"] for item in found}


class Meanwhile(HashEmbeddings):
    """Embeddings during which something else happens."""

    happens: Callable[[str], Awaitable[None]] | None = None

    @hookimpl
    async def embed_texts(self, model: str, texts: Sequence[str]) -> Embedded | None:
        if self.happens is not None:
            await self.happens(texts[0])
        return await super().embed_texts(model, texts)
