"""What the tests of conversations share: two accounts, a pipeline over two documents, ways to talk."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Executable, text

from kernel.testing import Actor, Running, eventually
from tests.builtin_plugins.rag.rag_support import ask, ingest, make_base, make_pipeline, path_of, somebody

T = TypeVar("T")

MINE = "/v1/conversations/mine"
SHARED = "/v1/conversations/shared-with-me"
HOTELS = """# Hotels

A hotel in Oslo may cost up to 130 EUR a night.

A hotel in Bergen may cost up to 95 EUR a night.
"""
MEALS = "# Meals\n\nThe daily allowance for meals is 42 EUR. The treasurer pays for it.\n"
OSLO = "How much may a hotel in Oslo cost?"


@dataclass
class Talk:
    """A pipeline that both may ask; it is Ann's."""

    running: Running
    ann: Actor
    bob: Actor
    base: str
    hotels: str
    meals: str
    pipeline: str

    async def ask(self, actor: Actor, conversation: str, question: str = OSLO, **more: Any) -> dict[str, Any]:
        """Ask in a conversation."""
        return await ask(actor, self.pipeline, question, conversation_id=conversation, **more)

    async def share(self, actor: Actor, conversation: str) -> Any:
        """Share a conversation over the pipeline."""
        return await actor.post(self.sharing(conversation))

    def sharing(self, conversation: str) -> str:
        """Where a conversation is shared (wire-facts 11.5)."""
        return f"/v1/rag/v1/pipeline/{self.pipeline}/conversations/{conversation}/share"

    async def forget(self, document: str) -> None:
        """Ann deletes a document."""
        assert (await self.ann.delete(path_of(self.base, document))).status == 200


def fresh() -> str:
    """A conversation that no other test uses."""
    return f"talk-{secrets.token_hex(4)}"


async def open_talk(running: Running) -> Talk:
    """Everything again."""
    ann, bob = await somebody(running), await somebody(running)
    base = await make_base(ann, visibility="shared")
    hotels = (await ingest(running, ann, base, "hotels.md", HOTELS))["document_id"]
    meals = (await ingest(running, ann, base, "meals.md", MEALS))["document_id"]
    pipeline = await make_pipeline(ann, base, visibility="shared")
    return Talk(running, ann, bob, base, hotels, meals, pipeline)


async def turns(actor: Actor, conversation: str, **query: Any) -> list[dict[str, Any]]:
    """The turns of a conversation."""
    answer = await actor.get(f"/v1/conversations/{conversation}/turns", params=query)
    assert answer.status == 200, answer.body
    return list(answer.json()["items"])


async def listed(actor: Actor) -> dict[str, Any]:
    """The conversations that somebody began, by id."""
    return {one["conversation_id"]: one for one in (await actor.get(MINE)).json()["items"]}


async def shared_with(actor: Actor) -> list[str]:
    """The ids of the conversations that others share with somebody, the latest first."""
    answer = await actor.get(SHARED, params={"limit": 100})
    assert answer.status == 200, answer.body
    return [one["conversation_id"] for one in answer.json()["items"]]


_WAITING = text(
    "SELECT count(*) FROM pg_locks WHERE relation = 'conversations_citation'::regclass AND NOT granted"
)


async def overtaken(talk: Talk, reading: Awaitable[T], *changes: Executable) -> T:
    """What `reading` finds if these changes come when it has read turns, but not yet their citations."""
    database = talk.running.platform.database
    async with database.connection() as changing:
        if not database.is_sqlite:
            await changing.execute(text("LOCK TABLE conversations_citation"))
        found = asyncio.ensure_future(reading)
        await eventually(lambda: database.is_sqlite or changing.scalar(_WAITING))
        for change in changes:
            await changing.execute(change)
    return await found
