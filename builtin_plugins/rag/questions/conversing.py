"""Questions of a conversation: the history, and the turn that stores question and answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from builtin_plugins.inference import api as inference
from builtin_plugins.rag import api
from builtin_plugins.rag.answering.prompting import EarlierTurn
from builtin_plugins.rag.questions.reporting import Done, Event
from builtin_plugins.rag.services.reading import pipeline_answer
from kernel.sdk import Caller


async def open_turn(
    caller: Caller, pipeline_id: str, question: str, conversation_id: str
) -> api.OpenTurn | None:
    """Open a turn of the caller's conversation; None if no plugin keeps conversations."""
    return await caller.platform.hooks.ask(
        api.open_turn,
        caller=caller,
        pipeline_id=pipeline_id,
        question=question,
        conversation_id=conversation_id,
        holder=None,
    )


def turns_of(history: Sequence[inference.ChatMessage]) -> list[EarlierTurn]:
    """Questions with the answers that follow them; unanswered ones are left out."""
    turns: list[EarlierTurn] = []
    question: str | None = None
    for message in history:
        if message.role == "user":
            question = message.content
        elif message.role == "assistant" and question is not None:
            turns.append(EarlierTurn(question, message.content))
            question = None
    return turns


async def with_stored_turn(
    caller: Caller, turn: api.OpenTurn, events: AsyncGenerator[Event, None]
) -> AsyncGenerator[Event, None]:
    """Pass on the events; the turn is stored before the last of them, or dropped if that never comes."""
    stored = False
    try:
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Done):
                    whole = await pipeline_answer(caller, event)
                    await turn.close(whole, whole.method)
                    stored = True
                yield event
    finally:
        if not stored:
            await turn.drop()
