"""One question, one method: plan → retrieve → check, reported step by step, then the answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from builtin_plugins.rag.methods.method import Method
from builtin_plugins.rag.questions.events import Done, Event
from builtin_plugins.rag.questions.following import complete
from builtin_plugins.rag.questions.question import Question
from builtin_plugins.rag.questions.ranked import Retrieved
from builtin_plugins.rag.questions.rendering import Draft, render
from builtin_plugins.rag.questions.writing import shown, write


async def run(method: Method, question: Question) -> AsyncGenerator[Event, None]:
    """Yields Steps (of a method that thinks), Found, Pieces, Done. Closing it stops the model.

    Raises Unavailable when embedding or generation fails.
    """
    thinking = asyncio.create_task(prepared(method, question))
    thinking.add_done_callback(lambda _: question.trace.close())
    try:
        async for step in question.trace.told():
            if method.thinks:
                yield step
        ready = await thinking
    finally:
        thinking.cancel()
        await asyncio.gather(thinking, return_exceptions=True)
    written = shown(question, ready) if isinstance(ready, Draft) else write(question, ready)
    async with aclosing(written):
        async for one in written:
            yield Done(render(question, one)) if isinstance(one, Draft) else one


async def prepared(method: Method, question: Question) -> Retrieved | Draft:
    """What the answer is to be written from, or an answer that the method has written itself."""
    await complete(question)
    plan = await method.plan(question)
    found = await method.retrieve(question, plan)
    return await method.check(question, plan, found)
