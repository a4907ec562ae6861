"""Writing the answer: by the model, with its citations checked in the stream, or by quoting the passages."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from builtin_plugins.rag.answering.citations import CitationFilter
from builtin_plugins.rag.answering.cited import pages_cited
from builtin_plugins.rag.answering.passages import Passage
from builtin_plugins.rag.answering.prompting import build_prompt
from builtin_plugins.rag.answering.refusing import refusal_in
from builtin_plugins.rag.errors import AnswerFailed
from builtin_plugins.rag.questions.compressing import compressed
from builtin_plugins.rag.questions.events import Found, Piece
from builtin_plugins.rag.questions.extracted import extracted
from builtin_plugins.rag.questions.model import NO_RUNTIME
from builtin_plugins.rag.questions.question import Question
from builtin_plugins.rag.questions.ranked import Ranked, Retrieved, on_pages, told
from builtin_plugins.rag.questions.refusals import RefusalGate
from builtin_plugins.rag.questions.rendering import Draft
from builtin_plugins.rag.questions.thread import in_thread
from builtin_plugins.rag.questions.weighing import weighed
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import contracts

Written = Found | Piece | Draft


async def write(question: Question, found: Retrieved) -> AsyncGenerator[Written, None]:
    """Yields Found, Pieces, and at last the Draft. Raises Unavailable when embedding or generation fails.

    Found waits until the text is known to be an answer: a refusal has no sources.
    """
    passages = await _shown(question, found)
    limit = question.platform.settings_of(RagSettings).answer_chars
    refusal = refusal_in(await question.language())
    prompt = build_prompt(question.text, passages, question.history, max_chars=limit, refusal=refusal)
    stream = question.model.answer(prompt.messages)
    if stream is None:
        question.trace.degrade(f"generation: {NO_RUNTIME}, the answer quotes the passages")
        written = extracted(question, found)
    elif not await worth_asking(question, found):
        await stream.aclose()
        written = _refusal(question)
    else:
        written = _generated(question, found, stream, prompt.passages_used)
    async with aclosing(written):
        async for one in written:
            yield one


async def draft(question: Question, found: Retrieved) -> Draft:
    """The whole answer at once, without showing it."""
    async with aclosing(write(question, found)) as written:
        async for one in written:
            if isinstance(one, Draft):
                return one
    raise AssertionError("writing ends with a draft")


async def shown(question: Question, made: Draft) -> AsyncGenerator[Written, None]:
    """An accepted draft, in the form that `write` yields."""
    yield Found(made.items, question.request.explain)
    yield Piece(made.text)
    yield made


async def worth_asking(question: Question, found: Retrieved) -> bool:
    """Whether anything found suggests an answer; without that, a model invents one."""
    return bool(found.items) and (await weighed(question, found)).hopeful


async def _shown(question: Question, found: Retrieved) -> list[Passage]:
    """The passages to answer from; with `compress`, only their best sentences."""
    passages = found.passages
    if not question.request.compress or not passages:
        return passages
    with question.trace.step("compress", "Keeping the sentences that fit"):
        kept = await in_thread(question.platform, compressed, question.text, passages)
    question.trace.details["compressor"] = {
        "original_length": sum(len(passage.text) for passage in passages),
        "compressed_length": sum(len(passage.text) for passage in kept),
    }
    return kept


async def _refusal(question: Question) -> AsyncGenerator[Written, None]:
    text = refusal_in(await question.language())
    yield Found([])
    yield Piece(text)
    yield Draft(text, [])


async def _generated(
    question: Question, found: Retrieved, stream: contracts.Generation, passages_used: int
) -> AsyncGenerator[Written, None]:
    items = told(found.items, (await weighed(question, found)).sure)
    gate, text, ends = RefusalGate(), list[str](), list[contracts.Generated]()
    with question.trace.step("answer", "Writing the answer"):
        async with aclosing(_checked(stream, passages_used, gate, ends)) as pieces:
            async for piece in pieces:
                if not text:
                    yield Found([] if gate.refused else items, question.request.explain)
                text.append(piece)
                yield Piece(piece)
    model, answer = ends[-1].model if ends else "", "".join(text).strip()
    yield Draft(answer, [] if gate.refused else await _located(question, answer, items), model)


async def _located(question: Question, text: str, items: Sequence[Ranked]) -> Sequence[Ranked]:
    """The passages; one over several pages is put on the page with what the answer cites it for."""
    passages = [item.passage for item in items]
    if not any(passage.pages for passage in passages):
        return items
    return on_pages(items, await in_thread(question.platform, pages_cited, text, passages))


async def _checked(
    stream: contracts.Generation, passages_used: int, gate: RefusalGate, ends: list[contracts.Generated]
) -> AsyncGenerator[str, None]:
    """The text in pieces, with valid citations only; `ends` receives the model's last item."""
    through, anything = CitationFilter(passages_used), False
    async with aclosing(stream):
        async for item in stream:
            if isinstance(item, str):
                text = gate.feed(through.feed(item))
            else:
                ends.append(item)
                text = gate.feed(through.close()) + gate.close()
            if text:
                anything = True
                yield text
    if not anything:
        raise AnswerFailed("The model gave an empty answer; raise max_tokens or choose another model")
