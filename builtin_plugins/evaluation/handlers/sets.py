"""Routes of evaluation sets, part of the service `rag-pipeline`."""

from __future__ import annotations

import asyncio

from builtin_plugins.evaluation.errors import (
    CandidateNotFound,
    EvaluationBaseNotFound,
    NoKnowledgeBases,
    NotSetOwner,
    QuestionNotFound,
    SetNotFound,
)
from builtin_plugins.evaluation.schemas import (
    Accepted,
    Added,
    CandidateOut,
    Generate,
    Generated,
    OfBase,
    QuestionOut,
    SetCreate,
    SetOut,
)
from builtin_plugins.evaluation.services import candidates, sets
from builtin_plugins.evaluation.services.reading import read_questions
from kernel.sdk import (
    AUTHENTICATED,
    BadRequest,
    Conflict,
    Context,
    InsufficientStorage,
    Page,
    PageQuery,
    PayloadTooLarge,
    RawBody,
    RouteTable,
    UnsupportedMediaType,
    read_body,
)
from kernel.sdk.http import RequestTimeout

routes = RouteTable("Evaluation", service="rag-pipeline")

_SETS = "/evaluation/sets"
_ONE = _SETS + "/{set_id:uuid}"
_LARGEST = 8 << 20
_SILENCE = 30.0
_MOST_VALUES = 1_000_000  # JSON Lines, in which a single line may be the whole file
_FILE = RawBody(
    ("application/jsonl", "text/csv"),
    {"type": "string", "description": "One question a line; CSV begins with the names of its columns."},
    example=(
        '{"question": "What may a hotel cost?", "documents": ["travel-policy.pdf"], "answers": ["130 EUR"]}\n'
        '{"question": "Which trains can I book?", "answers": ["second class", "2nd class"]}\n'
        '{"question": "Who won the last World Cup?", "unanswerable": true}\n'
    ),
    more_examples={
        "text/csv": "question,documents,answers,unanswerable\n"
        "What may a hotel cost?,travel-policy.pdf,130 EUR,\n"
        "Which trains can I book?,,second class|2nd class,\n"
        "Who won the last World Cup?,,,true\n"
    },
)


@routes.post(
    _SETS,
    access=AUTHENTICATED,
    body=SetCreate,
    returns=SetOut,
    status=201,
    errors=(EvaluationBaseNotFound, NotSetOwner, NoKnowledgeBases, Conflict),
    max_body=_LARGEST,
)
async def create(ctx: Context, body: SetCreate) -> SetOut:
    """Create a set of questions about a knowledge base."""
    return await sets.create(ctx.caller, body)


@routes.get(_SETS, access=AUTHENTICATED, query=OfBase, returns=Page[SetOut], errors=(NoKnowledgeBases,))
async def list_all(ctx: Context, query: OfBase) -> Page[SetOut]:
    """List the sets of the knowledge bases that the caller sees, newest first."""
    return await sets.list_page(ctx.caller, query)


@routes.get(_ONE, access=AUTHENTICATED, returns=SetOut, errors=(SetNotFound, NoKnowledgeBases))
async def get(ctx: Context, set_id: str) -> SetOut:
    """Show a set."""
    return await sets.get(ctx.caller, set_id)


@routes.delete(_ONE, access=AUTHENTICATED, status=204, errors=(SetNotFound, NotSetOwner, NoKnowledgeBases))
async def remove(ctx: Context, set_id: str) -> None:
    """Delete a set with its runs."""
    await sets.remove(ctx.caller, set_id)


@routes.get(
    _ONE + "/questions",
    access=AUTHENTICATED,
    query=PageQuery,
    returns=Page[QuestionOut],
    errors=(SetNotFound, NoKnowledgeBases),
)
async def questions(ctx: Context, set_id: str, query: PageQuery) -> Page[QuestionOut]:
    """List the questions of a set in their order."""
    return await sets.questions(ctx.caller, set_id, query)


@routes.post(
    _ONE + "/upload",
    access=AUTHENTICATED,
    body=_FILE,
    returns=Added,
    errors=(
        *(SetNotFound, NotSetOwner, NoKnowledgeBases, BadRequest, Conflict),
        *(InsufficientStorage, PayloadTooLarge, RequestTimeout, UnsupportedMediaType),
    ),
    max_body=_LARGEST,
)
async def upload(ctx: Context, set_id: str) -> Added:
    """Add the questions of a file, as JSON Lines or as CSV with a header.

    Fields are `question`, `documents`, `passages`, `answers` and `unanswerable`; lists in CSV are separated
    by `|`. Questions that the set already has are skipped.
    """
    await sets.check_own(ctx.caller, set_id)
    if ctx.request.content_type not in _FILE.media_types:
        raise UnsupportedMediaType(f"Send the file as {' or '.join(_FILE.media_types)}")
    if ctx.request.content_type == "text/csv":
        raw = await read_body(ctx.request, _LARGEST, _SILENCE)
        entries = await asyncio.to_thread(read_questions, raw, "csv")
    else:
        raw = await read_body(ctx.request, _LARGEST, _SILENCE, most_values=_MOST_VALUES)
        entries = await asyncio.to_thread(read_questions, raw, "jsonl")
    return await sets.add(ctx.caller, set_id, entries)


@routes.post(
    _ONE + "/generate",
    access=AUTHENTICATED,
    body=Generate,
    returns=Generated,
    errors=(SetNotFound, NotSetOwner, NoKnowledgeBases, Conflict),
    long=True,
)
async def generate(ctx: Context, set_id: str, body: Generate) -> Generated:
    """Add questions made from the documents: from headings, definitions and figures, or by a model.

    Their `origin` is `generated`. They are deleted with their documents.
    """
    return await sets.generate(ctx.caller, set_id, body)


@routes.get(
    _ONE + "/candidates",
    access=AUTHENTICATED,
    query=PageQuery,
    returns=Page[CandidateOut],
    errors=(SetNotFound, NotSetOwner, NoKnowledgeBases),
)
async def list_candidates(ctx: Context, set_id: str, query: PageQuery) -> Page[CandidateOut]:
    """List rated questions from conversations and published chats, latest first.

    Only those that the caller may read, about the set's knowledge base, and not yet in the set.
    """
    return await candidates.list_page(ctx.caller, set_id, query)


@routes.post(
    _ONE + "/candidates",
    access=AUTHENTICATED,
    body=Accepted,
    returns=Added,
    errors=(SetNotFound, NotSetOwner, NoKnowledgeBases, CandidateNotFound, Conflict),
)
async def accept_candidates(ctx: Context, set_id: str, body: Accepted) -> Added:
    """Add candidates to the set, with what is expected of their answers.

    A candidate rated `up` expects the passages that its answer cites, unless you say otherwise; for one rated
    `down` you must say what is expected.
    """
    return await candidates.accept(ctx.caller, set_id, body)


@routes.delete(
    _ONE + "/questions/{question_id:int}",
    access=AUTHENTICATED,
    status=204,
    errors=(SetNotFound, QuestionNotFound, NotSetOwner, NoKnowledgeBases),
)
async def remove_question(ctx: Context, set_id: str, question_id: int) -> None:
    """Delete a question, and its results in all runs."""
    await sets.remove_question(ctx.caller, set_id, question_id)
