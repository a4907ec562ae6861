"""The one route that Dify calls, and its errors in Dify's shape (its External Knowledge API)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from aiohttp import hdrs, web
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from builtin_plugins.rag import api as rag
from kernel.sdk import (
    AUTHENTICATED,
    Context,
    NotFound,
    PlatformError,
    RouteTable,
    Unavailable,
    Unprocessable,
    example,
)
from kernel.sdk.http import ErrorBody, ErrorFormat, HTTPValidationError, error_response

_MALFORMED, _REFUSED, _UNKNOWN = 1001, 1002, 2001
"""Dify's own codes: no bearer token, a wrong one, no such knowledge. Others are the HTTP status."""
_UNAUTHORIZED: Final = (401, 403)


class DifyError(ErrorBody):
    """Body of an error; Dify shows it to the person who asked."""

    error_code: int
    error_msg: str


class DifyValidationError(HTTPValidationError):
    """Body of a 422."""

    error_code: int
    error_msg: str


class RetrievalSetting(BaseModel):
    """How many passages Dify wants, and how good they must be."""

    top_k: int = Field(5, ge=1, le=100)
    score_threshold: float | None = Field(None, ge=0, le=1)


class DifyRetrieval(BaseModel):
    """A question of Dify's; `knowledge_id` is the id of a knowledge base."""

    model_config = ConfigDict(
        extra="ignore",
        **example(
            knowledge_id="3f2c9d1e-7a54-4b0e-9c1d-2f6a8e5b7c90",
            query="How much may a hotel in Oslo cost per night?",
            retrieval_setting={"top_k": 5, "score_threshold": 0.3},
        ),
    )

    knowledge_id: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=64)]
    query: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=8000)]
    retrieval_setting: RetrievalSetting = RetrievalSetting()
    metadata_condition: rag.MetadataCondition | None = None


class DifyRecord(BaseModel):
    """A passage: its text, the name of its document, and where it is."""

    content: str
    score: float
    title: str
    metadata: dict[str, Any]


class DifyRecords(BaseModel):
    """The passages, best first."""

    records: list[DifyRecord]


def _respond(ctx: Context, refused: PlatformError) -> web.Response:
    message = refused.detail
    if isinstance(message, list):
        message = "; ".join(f"{'.'.join(map(str, one['loc'][1:]))}: {one['msg']}" for one in message)
    return error_response(refused, error_code=_code_of(ctx, refused), error_msg=str(message))


def _code_of(ctx: Context, refused: PlatformError) -> int:
    if refused.status in _UNAUTHORIZED:
        sent = ctx.request.headers.get(hdrs.AUTHORIZATION, "")
        return _REFUSED if sent.lower().startswith("bearer ") else _MALFORMED
    return _UNKNOWN if isinstance(refused, NotFound) else refused.status


DIFY_ERRORS = ErrorFormat(_respond, DifyError, DifyValidationError)

routes = RouteTable("Dify", service="rag-pipeline", token_scopes=("ask",))


@routes.post(
    "/dify/retrieval",
    access=AUTHENTICATED,
    body=DifyRetrieval,
    returns=DifyRecords,
    errors=(rag.KnowledgeBaseNotFound, Unprocessable, Unavailable),
    error_format=DIFY_ERRORS,
    long=True,
)
async def retrieve_for_dify(ctx: Context, body: DifyRetrieval) -> DifyRecords:
    """Search a knowledge base for Dify. Its API endpoint there is this address without `/retrieval`."""
    try:
        passages = await ctx.platform.hooks.ask(
            rag.search_passages,
            ctx.caller,
            body.query,
            body.retrieval_setting.top_k,
            [body.knowledge_id],
            rag.filter_from_dify(body.metadata_condition),
        )
    except Unprocessable as refused:
        raise Unprocessable([{**one, "loc": _place(one["loc"])} for one in refused.detail]) from None
    least = body.retrieval_setting.score_threshold or 0.0
    return DifyRecords(records=[_record(one) for one in passages or () if one.score >= least])


def _place(loc: Sequence[str | int]) -> list[str | int]:
    """Where in a request of Dify's a filter is wrong, from its place in ours."""
    if list(loc[:2]) != ["body", "metadata_filter"]:
        return list(loc)
    condition = loc[3:4] if list(loc[2:3]) == ["filters"] else ()
    part = {"key": "name", "value": "value"}.get(str(loc[-1])) if condition else None
    conditions = ["conditions", *condition] if condition else []
    return ["body", "metadata_condition", *conditions, *([part] if part else [])]


def _record(passage: rag.Passage) -> DifyRecord:
    place = {
        "knowledge_base_id": passage.knowledge_base_id,
        "document_id": passage.document_id,
        "chunk_id": passage.chunk_id,
        "page": passage.page,
        "section": passage.section_at(0),
    }
    metadata = {name: value for name, value in place.items() if value is not None}
    return DifyRecord(content=passage.text, score=passage.score, title=passage.source, metadata=metadata)
