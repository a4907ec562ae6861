"""Writing the answer: by the model, with its citations checked in the stream, or by quoting the passages."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

from builtin_plugins.inference import api as inference
from builtin_plugins.rag import api
from builtin_plugins.rag.answering.alike_documents import are_alike
from builtin_plugins.rag.answering.citation_support import pages_cited
from builtin_plugins.rag.answering.citations import CitationFilter, quoted
from builtin_plugins.rag.answering.cited_sentences import sentences_cited, span_of_quote
from builtin_plugins.rag.answering.difference_texts import difference_in
from builtin_plugins.rag.answering.period_texts import period_note
from builtin_plugins.rag.answering.prompting import build_prompt
from builtin_plugins.rag.answering.refusal_texts import name_refusal_in, refusal_in
from builtin_plugins.rag.errors import AnswerFailed, NoModel
from builtin_plugins.rag.filters.grammar import filter_as_sent
from builtin_plugins.rag.methods import NO_RUNTIME
from builtin_plugins.rag.passages import Draft, Passage, QuotedSpan, RetrievedPassages
from builtin_plugins.rag.questions.compressing import compressed
from builtin_plugins.rag.questions.periods import days_of
from builtin_plugins.rag.questions.question import Question, in_thread
from builtin_plugins.rag.questions.refusals import RefusalGate
from builtin_plugins.rag.questions.reporting import (
    AnswerBasis,
    AnswerPiece,
    CitedPlace,
    in_places,
    source_of,
    with_confidence,
    with_quotes,
)
from builtin_plugins.rag.questions.retrieval import place_of
from builtin_plugins.rag.questions.support import support
from builtin_plugins.rag.questions.unknown_names import unknown_name
from builtin_plugins.rag.schemas import Explanation, QueryAnswer
from builtin_plugins.rag.settings import RagSettings


def render(question: Question, draft: Draft) -> QueryAnswer:
    """The answer; its confidence is the mean score of its sources, 0.0 without any."""
    scores = [item.score for item in draft.passages]
    return QueryAnswer(
        answer=draft.text,
        sources=[source_of(item, explain=question.request.explain) for item in draft.passages],
        confidence=round(sum(scores) / len(scores), 3) if scores else 0.0,
        model_used=draft.model,
        tokens_used=question.budget.tokens_told,
        output_tokens=question.budget.output_tokens_told,
        model_calls=question.budget.calls,
        method=question.method,
        method_details=_details(question),
        explain=Explanation(steps=question.trace.steps) if question.request.explain else None,
    )


def _details(question: Question) -> dict[str, Any]:
    request, trace = question.request, question.trace
    details = dict(trace.details)
    if request.metadata_filter is not None:
        details["metadata_filter"] = filter_as_sent(request.metadata_filter)
    if trace.degraded:
        details["degraded"] = list(trace.degraded)
    return details


async def extracted(
    question: Question, retrieved: RetrievedPassages
) -> AsyncGenerator[AnswerBasis | AnswerPiece | Draft, None]:
    """Yields Found, a Piece, the Draft. Raises NoModel if no plugin answers without one.

    A question about a name that no document has is refused, whatever else the passages answer.
    """
    with question.trace.step("answer", "Choosing the sentences that answer"):
        measured = await support(question, retrieved)
        if measured is None:
            raise NoModel()
        name = await unknown_name(question, retrieved)
        sources: Sequence[Passage] = []
        if name is not None:
            text = name_refusal_in(await question.language(), name)
            question.trace.details["unknown_name"] = name
        elif measured.is_enough and measured.quotes:
            days = await _days(question, measured, retrieved) if measured.differ else {}
            text, sources = _cited(measured, retrieved, days)
            if measured.differ:
                text = f"{difference_in(await question.language())} {text}"
                question.trace.details["documents_differ"] = True
        else:
            text = refusal_in(await question.language())
    yield AnswerBasis(sources, question.request.explain)
    yield AnswerPiece(text)
    yield Draft(text, sources)


async def _days(question: Question, measured: api.Support, retrieved: RetrievedPassages) -> dict[str, date]:
    """The date of each quoted document: from when it applies, else its own, else that of its upload."""
    quoted = [retrieved.judged[quote.passage] for quote in measured.quotes]
    fields = [base.date_field for base in question.bases if base.date_field is not None]
    seconds_by_document = await days_of(question, quoted, fields)
    days = {one.document_id: one.version.uploaded_at.date() for one in quoted if one.version is not None}
    return days | {
        one: datetime.fromtimestamp(seconds, UTC).date() for one, seconds in seconds_by_document.items()
    }


def _cited(
    measured: api.Support, retrieved: RetrievedPassages, days: Mapping[str, date]
) -> tuple[str, Sequence[Passage]]:
    """The quotations, each with the number of its source, and the sources.

    Where documents contradict each other, or several could be meant, each quotation says whose it is, with
    the document's day if it is among `days`.
    """
    judged, sources = retrieved.judged, list(retrieved.passages)
    is_named = measured.differ or any(
        are_alike(judged[quote.passage], quote.start, one) for quote in measured.quotes for one in judged
    )
    if place_of(judged[measured.quotes[0].passage], sources) is None:
        # If few sources are shown, one that answers is worth more than the last of them.
        sources = [*sources[:-1], judged[measured.quotes[0].passage]]
    texts, places = list[str](), dict[int, CitedPlace]()
    spans = dict[int, list[QuotedSpan]]()
    for quote in measured.quotes:
        item = judged[quote.passage]
        number = place_of(item, sources)
        if number is not None:
            day = days.get(item.document_id)
            whose = "" if not is_named else f"{item.source}: " if day is None else f"{item.source} ({day}): "
            texts.append(f"{whose}{quoted(quote.text)} [{number}]")
            place = CitedPlace(item.page_at(quote.start), item.section_at(quote.start))
            places.setdefault(number, place)
            span = span_of_quote(item, quote.start, quote.text)
            spans.setdefault(number, []).extend([span] if span else [])
    passages = in_places(with_confidence(sources, measured.probability), places)
    return " ".join(texts), with_quotes(passages, spans)


Written = AnswerBasis | AnswerPiece | Draft


async def write(question: Question, retrieved: RetrievedPassages) -> AsyncGenerator[Written, None]:
    """Yields Found, Pieces, and at last the Draft. Raises Unavailable when embedding or generation fails.

    Found waits until the text is known to be an answer: a refusal has no sources.
    """
    passages = await _context_passages(question, retrieved)
    if not await question.model.installed():
        question.trace.degrade(f"generation: {NO_RUNTIME}, the answer quotes the passages")
        written = extracted(question, retrieved)
    elif not await worth_asking(question, retrieved):
        written = _refusal(question)
    else:
        written = _generated(question, retrieved, passages)
    async with aclosing(_with_note(question, written)) as noted:
        async for part in noted:
            yield part


async def _with_note(
    question: Question, written: AsyncGenerator[Written, None]
) -> AsyncGenerator[Written, None]:
    """The same; an answer from documents of another time than was asked for begins by saying so."""
    limiting, note = question.period, ""
    async with aclosing(written):
        async for part in written:
            if isinstance(part, AnswerBasis) and part.passages and limiting and not limiting.item.applied:
                note = f"{period_note(await question.language(), named=limiting.item.words is not None)} "
                yield part
                yield AnswerPiece(note)
            elif isinstance(part, Draft) and part.passages and note:
                yield replace(part, text=note + part.text)
            else:
                yield part


async def draft(question: Question, retrieved: RetrievedPassages) -> Draft:
    """The whole answer at once, without showing it."""
    async with aclosing(write(question, retrieved)) as written:
        async for part in written:
            if isinstance(part, Draft):
                return part
    raise AssertionError("writing ends with a draft")


async def draft_parts(question: Question, accepted_draft: Draft) -> AsyncGenerator[Written, None]:
    """An accepted draft, in the form that `write` yields."""
    yield AnswerBasis(accepted_draft.passages, question.request.explain)
    yield AnswerPiece(accepted_draft.text)
    yield accepted_draft


async def worth_asking(question: Question, retrieved: RetrievedPassages) -> bool:
    """Whether anything found suggests an answer; without that, a model invents one."""
    if not retrieved.passages:
        return False
    measured = await support(question, retrieved)
    return measured is None or measured.is_hopeful


async def _context_passages(question: Question, retrieved: RetrievedPassages) -> Sequence[Passage]:
    """The passages to answer from; with `compress`, only their best sentences."""
    passages = retrieved.passages
    if not question.request.compress or not passages:
        return passages
    with question.trace.step("compress", "Keeping the sentences that fit"):
        context = await in_thread(question.platform, compressed, question.text, passages)
    question.trace.details["compressor"] = {
        "original_length": sum(len(passage.text) for passage in passages),
        "compressed_length": sum(len(passage.text) for passage in context),
    }
    return context


async def _refusal(question: Question) -> AsyncGenerator[Written, None]:
    text = refusal_in(await question.language())
    yield AnswerBasis([])
    yield AnswerPiece(text)
    yield Draft(text, [])


async def _generated(
    question: Question, retrieved: RetrievedPassages, passages: Sequence[Passage]
) -> AsyncGenerator[Written, None]:
    measured = await support(question, retrieved)
    items = (
        retrieved.passages if measured is None else with_confidence(retrieved.passages, measured.probability)
    )
    limit = question.platform.settings_of(RagSettings).answer_chars
    refusal = refusal_in(await question.language())
    prompt = build_prompt(question.text, passages, question.history, max_chars=limit, refusal=refusal)
    stream = question.model.answer(prompt.messages)
    if stream is None:
        raise AnswerFailed("The model runtime has just been taken out of service; ask again")
    gate, text, ends = RefusalGate(), list[str](), list[inference.Completion]()
    with question.trace.step("answer", "Writing the answer"):
        async with aclosing(_checked(stream, prompt.passages_used, gate, ends)) as pieces:
            async for piece in pieces:
                if not text:
                    yield AnswerBasis([] if gate.refused else items, question.request.explain)
                text.append(piece)
                yield AnswerPiece(piece)
    model, answer = ends[-1].model if ends else "", "".join(text).strip()
    yield Draft(answer, [] if gate.refused else await _located(question, answer, items), model)


async def _located(question: Question, text: str, items: Sequence[Passage]) -> Sequence[Passage]:
    """The passages, with the sentences that they are cited for; one over several pages is put on the page of
    the first.
    """
    spans = await in_thread(question.platform, sentences_cited, text, items)
    passages = with_quotes(items, spans)
    if not any(passage.pages for passage in items):
        return passages
    pages = await in_thread(question.platform, pages_cited, text, items)
    return in_places(passages, {number: CitedPlace(page) for number, page in pages.items()})


async def _checked(
    stream: inference.Generation, passages_used: int, gate: RefusalGate, ends: list[inference.Completion]
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
