"""Bodies and answers of the RAG routes (spec 4.11, wire-facts 11, decisions.md)."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from builtin_plugins.documents.api import MAX_SIZE
from builtin_plugins.rag.filters.grammar import SentFilter
from builtin_plugins.rag.schemas_time import AsOf, PeriodItem
from kernel.sdk import READABLE, Body, Message, PageQuery, example

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=255), READABLE]
ModelName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=255)]
FieldName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=64), READABLE]
Text = Annotated[str, Field(max_length=10_000)]
Visibility = Literal["private", "team", "organization", "shared"]
Id = Annotated[int, Field(ge=1, lt=2**31)]
Publishing = Literal["owner", "allowed"]
Status = Literal["processing", "completed", "failed"]
VersionStatus = Literal["processing", "completed", "failed", "superseded"]

_MAX_CONFIG_CHARS = 20_000
MOST_ATTACHMENTS = 20


def _absent(value: object) -> bool:
    return value is None


_FILTER = (
    "Which documents are searched: a value for each field, or OpenAI's attribute filters, such as "
    '`{"type": "gte", "key": "created", "value": "2026-01"}`, with `and`, `or` and `not`.'
)
_PUBLISHING = (
    "Who may publish a chat that answers from it to people without an account: only its owner, or, if "
    "`allowed`, everybody who can read it."
)
_DATE_FIELD = (
    "The field of the kind `date` that says of when a document is, if it has neither `valid_from` nor "
    "`valid_until`. Periods in questions are compared with it; null for none."
)
_ACCEPT_DATES = (
    "Whether what documents say about when they apply (`valid_from`, `valid_until`) counts without being "
    "accepted. A change is applied to the documents that are there by a job."
)
_OWNER = (
    "The account that it belongs to; only a service can name another. What a service makes without "
    "an owner can't be private."
)


class MessageWithId(Message):
    """What was done, and the id of the object."""

    id: str


People = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=320)]], Field(min_length=1, max_length=100)
]
_PEOPLE = (
    "With the visibility `team`, instead of a `team_id`: the usernames or proven e-mail addresses of the "
    "accounts that see it, instead of those before. The `team_id` then stands for them: see "
    "`GET /v1/teams/{team_id}`."
)


class Sharing(BaseModel):
    """Who else can read and ask: the members of a team or an organization, or every account."""

    visibility: Visibility = "private"
    team_id: Id | None = None
    organization_id: Id | None = None
    people: People | None = Field(None, description=_PEOPLE)


class SharingUpdate(BaseModel):
    """A change of who can read and ask. Omitted fields stay as they are."""

    visibility: Visibility | None = None
    team_id: Id | None = None
    organization_id: Id | None = None
    people: People | None = Field(None, description=_PEOPLE)


class KnowledgeBaseCreate(Sharing, Body):
    """A new knowledge base. The embedding model and the chunk parameters can't be changed later."""

    model_config = example(name="Nordlys", description="Manuals and policies")

    name: Name
    description: Text = ""
    embedding_model: ModelName | None = Field(None, description="multilingual-e5-small when omitted.")
    llm_model: ModelName | None = None
    chunk_size: Annotated[int, Field(ge=1, le=MAX_SIZE)] = 1500
    chunk_overlap: Annotated[int, Field(ge=0, le=MAX_SIZE)] = 150
    graph: bool = Field(False, description="Build a graph of the documents' entities as well.")
    owner_id: Id | None = Field(None, description=_OWNER)
    publishing: Publishing = Field("owner", description=_PUBLISHING)
    date_field: FieldName | None = Field(None, description=_DATE_FIELD)
    accept_dates: bool = Field(False, description=_ACCEPT_DATES)

    @model_validator(mode="after")
    def _overlap_fits(self) -> KnowledgeBaseCreate:
        if self.chunk_overlap >= self.chunk_size:
            if "chunk_overlap" in self.model_fields_set:
                raise ValueError("chunk_overlap must be smaller than chunk_size")
            self.chunk_overlap = self.chunk_size // 10
        return self


class KnowledgeBaseUpdate(SharingUpdate):
    """Fields that can be changed. Omitted fields stay as they are; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", **example(name="Nordlys manuals", visibility="shared"))

    name: Name | None = None
    description: Text | None = None
    llm_model: ModelName | None = None
    publishing: Publishing | None = Field(None, description=_PUBLISHING)
    date_field: FieldName | None = Field(None, description=_DATE_FIELD)
    accept_dates: bool | None = Field(None, description=_ACCEPT_DATES)
    graph: bool | None = Field(
        None,
        description="true builds a graph of existing documents, in a job to follow at /v1/jobs, and of "
        "future ones; sent again it builds what is missing. false drops it.",
    )


class KnowledgeBaseDelete(Body):
    """Confirms that exactly these pipelines are deleted too."""

    model_config = example(confirm_delete_pipeline_ids=["3f0c9a52-7d0e-4b1c-9a65-0c1d2e3f4a5b"])

    confirm_delete_pipeline_ids: list[Annotated[str, Field(max_length=64)]] = Field([], max_length=10_000)


class KnowledgeBaseOut(BaseModel):
    """A knowledge base with the counts of its completed documents."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    name: str
    description: str
    embedding_model: str
    llm_model: str | None
    chunk_size: int
    chunk_overlap: int
    graph: bool
    document_count: int
    vector_count: int
    owner_id: int | None
    visibility: str
    team_id: int | None
    organization_id: int | None
    publishing: Publishing = Field(description=_PUBLISHING)
    date_field: str | None = Field(None, description=_DATE_FIELD)
    accept_dates: bool = Field(False, description=_ACCEPT_DATES)
    created_at: datetime


class KnowledgeBaseQuery(PageQuery):
    """Paging of knowledge bases."""

    owner_id: Id | None = Field(None, description="Only those that belong to this account or to nobody.")


class DocumentOut(BaseModel):
    """A document."""

    model_config = ConfigDict(from_attributes=True)

    document_id: str
    filename: str
    content_type: str
    size_bytes: int
    sha256: str
    status: VersionStatus = Field(
        description="`superseded` is a version that a newer one has replaced; lists don't have it."
    )
    chunk_count: int
    vector_count: int
    searchable_count: int = Field(
        description="Passages that searches find: while it is read, those that are found by their words."
    )
    page_count: int | None
    error: str | None
    notice: str | None = Field(description="What a completed document lacks, or what it waits for.")
    parent_id: str | None = Field(
        description="The archive or message that it came out of, which may be gone; null for an upload."
    )
    uploaded_at: datetime
    completed_at: datetime | None
    tree_nodes_created: int = Field(description="Summaries in the document's tree; 0 if it has none.")
    path: str | None = Field(
        None, description="Where it is, if it was uploaded with a path; a later upload replaces it."
    )
    external_id: str | None = Field(None, description="The uploader's own id, if there is one.")
    kept_by: str | None = Field(
        None, description="The plugin that keeps it in step with something, such as `sources`, if one does."
    )
    version: int = Field(
        1, description="Counts the uploads under its path or id. Each has its own `document_id`."
    )
    superseded_at: datetime | None = Field(None, description="Since when a newer version answers instead.")
    metadata: dict[str, Any] = Field(
        {}, description="The values of its fields, by name; a list for fields with several values."
    )


class UploadedDocument(DocumentOut):
    """The document that an upload made, or that has the same bytes."""

    same_name: list[str] = Field(
        [], description="Ids of other documents of this file name in the knowledge base, at most 20."
    )


class ReembedRequest(Body):
    """The embedding model to change to."""

    model_config = example(embedding_model="multilingual-e5-small")

    embedding_model: str = Field(min_length=1, max_length=255, description="A model that is available here.")


class TreeRequest(Body):
    """What to build."""

    model_config = example(rebuild=False)

    rebuild: bool = Field(False, description="Also rebuild existing trees.")


class DocumentQuery(BaseModel):
    """Paging of documents. Without a limit, all are on one page."""

    limit: int | None = Field(None, ge=1, le=500)
    offset: int = Field(0, ge=0, le=2**53)
    status: Status | None = None
    parent_id: str | None = Field(
        None, max_length=64, description="Only documents that came out of the document with this id."
    )
    filter: str | None = Field(
        None, max_length=20_000, description="Only documents that match this filter on their fields, as JSON."
    )


class ChunkOut(BaseModel):
    """A passage and its position, as character offsets in the parsed text."""

    chunk_id: str
    chunk_index: int
    text: str
    page: int | None
    char_start: int
    char_end: int


class _Config(BaseModel):
    """A configuration whose known keys are checked; further ones are kept."""

    model_config = ConfigDict(extra="allow")

    @model_validator(mode="after")
    def _can_be_stored(self) -> Self:
        try:
            size = len(json.dumps(self.model_extra, allow_nan=False))
        except ValueError:
            raise ValueError("NaN and infinite numbers can't be stored") from None
        if size > _MAX_CONFIG_CHARS:
            raise ValueError(
                f"additional keys take up {size} characters; at most {_MAX_CONFIG_CHARS} are allowed"
            )
        return self


class RetrievalConfig(_Config):
    """Defaults for questions that don't specify their own values."""

    top_k: Annotated[int, Field(ge=1, le=100)] | None = None
    hybrid: bool | None = None
    metadata_filter: SentFilter | None = Field(
        None, description="Which documents the pipeline answers from, together with a question's own filter."
    )


class GenerationConfig(_Config):
    """How the model generates answers. Additional keys are passed to the model runtime."""

    model: ModelName | None = None
    temperature: Annotated[float, Field(strict=True, ge=0, le=2, allow_inf_nan=False)] | None = None
    max_tokens: Annotated[int, Field(strict=True, ge=1, le=32_768)] | None = None


class PipelineCreate(Sharing, Body):
    """A new pipeline."""

    model_config = example(name="ask", knowledge_base_ids=["3f0c9a52-7d0e-4b1c-9a65-0c1d2e3f4a5b"])

    name: Name
    knowledge_base_ids: list[Annotated[str, Field(max_length=64)]] = Field(min_length=1, max_length=100)
    retrieval_config: RetrievalConfig = RetrievalConfig()
    generation_config: GenerationConfig = GenerationConfig()
    owner_user_id: Id | None = Field(None, description=_OWNER)


class PipelineUpdate(SharingUpdate, Body):
    """Fields that can be changed. Omitted fields stay as they are."""

    model_config = example(name="ask everything")

    name: Name | None = None
    knowledge_base_ids: list[Annotated[str, Field(max_length=64)]] | None = Field(
        None, min_length=1, max_length=100
    )
    retrieval_config: RetrievalConfig | None = Field(None, description="Replaces the whole configuration.")
    generation_config: GenerationConfig | None = Field(None, description="Replaces the whole configuration.")


class PipelineCreated(BaseModel):
    """The pipeline that was created."""

    pipeline_id: str
    name: str
    knowledge_base_ids: list[str]
    visibility: str
    team_id: int | None
    organization_id: int | None
    created_at: datetime
    message: str


class PipelineOut(BaseModel):
    """A pipeline, with those of its knowledge bases that the caller can see."""

    id: str
    name: str
    knowledge_base_ids: list[str]
    created_at: datetime
    owner_user_id: int | None
    visibility: str
    team_id: int | None
    organization_id: int | None
    metadata_filter: dict[str, Any] | None = Field(
        None, exclude_if=_absent, description="Which documents it answers from, if not from all."
    )


class PipelineQuery(PageQuery):
    """Paging of pipelines."""

    owner_user_id: Id | None = None


class SearchRequest(BaseModel):
    """A question to search for, without generating an answer. Unknown fields are refused.

    If a misspelled filter were ignored, everything would be searched.
    """

    model_config = ConfigDict(
        extra="forbid", **example(question="How much may a hotel in Oslo cost per night?", hybrid=True)
    )

    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=8000)]
    top_k: int = Field(5, ge=1, le=100)
    hybrid: bool | None = Field(
        None, description="Search by meaning and by words. Defaults to the pipeline's setting, or true."
    )
    metadata_filter: SentFilter | None = Field(None, description=_FILTER)
    as_of: AsOf | None = Field(
        None,
        description="Search only the versions that were current at a time (with its zone) or at the end of a "
        "day, such as `2026-03-01`; by default, the present ones.",
    )
    use_period: bool = Field(
        True,
        description="Search only documents of the period that the question names (`last year`, "
        "`before 2024`), else those that apply today, where documents say when they apply or are.",
    )
    rerank: bool = Field(
        False, description="Find more passages, rerank them and keep the best, if there is a reranker."
    )
    parent_context: bool = Field(False, description="Return each passage with its neighbors.")
    graph: bool = Field(False, description="Also rank by a knowledge graph, if a plugin provides one.")


class QueryRequest(SearchRequest):
    """A question to answer. Unknown fields are refused."""

    method: Annotated[str, Field(max_length=32), AfterValidator(str.lower)] = Field(
        "standard",
        description="standard, hyde, self_rag, corrective, raptor, auto, or a method of a plugin.",
    )
    conversation_id: Annotated[str, StringConstraints(min_length=1, max_length=255)] | None = Field(
        None, description="Chosen by the client; questions with the same id are one conversation."
    )
    llm_model: ModelName | None = None
    attachments: list[Annotated[str, Field(max_length=64)]] = Field(
        [],
        max_length=MOST_ATTACHMENTS,
        description="Ids of documents, of any knowledge base that the caller sees, to ask beside those of "
        "the pipeline; filters and `as_of` don't apply to them.",
    )
    only_attachments: bool = Field(False, description="Ask the `attachments`, and nothing else.")
    compress: bool = Field(False, description="Answer only from the sentences that fit the question best.")
    explain: bool = Field(False, description="Add the steps with their times, and each source's scores.")

    @model_validator(mode="after")
    def _has_attachments(self) -> Self:
        if self.only_attachments and not self.attachments:
            raise ValueError("only_attachments needs attachments")
        return self


class LegScores(BaseModel):
    """The score of a passage in each part of the search."""

    dense: float = Field(description="Similarity of meaning: 0 is unrelated, 1 is the same text.")
    text: float | None = Field(description="How well the words match (BM25), from 0 to 1.")
    fused: float = Field(
        description="Both combined; passages are ordered by it unless reranking or a graph changes the order."
    )
    rerank: float | None = Field(None, exclude_if=_absent, description="The reranker's score, from 0 to 1.")
    graph: float | None = Field(None, exclude_if=_absent, description="The knowledge graph's score.")


class QuotePlace(BaseModel):
    """Characters of a document's text, from `char_start` until before `char_end`."""

    char_start: int
    char_end: int


class Source(BaseModel):
    """A passage; the answer cites the first as [1]. `page` is that of what is quoted, else its first."""

    text: str
    source: str
    score: float
    chunk_id: str
    document_id: str
    version: int | None = Field(None, exclude_if=_absent, description="Which version of the document it is.")
    sha256: str | None = Field(None, exclude_if=_absent, description="The digest of that version's file.")
    page: int | None
    char_start: int
    char_end: int
    last_page: int | None = Field(None, exclude_if=_absent, description="The last page, if not `page`.")
    section: str | None = Field(
        None, exclude_if=_absent, description="The headings above what is quoted: `Item 7 › Liquidity`."
    )
    quotes: list[QuotePlace] | None = Field(
        None, exclude_if=_absent, description="The sentences that are quoted, or cited, where that is known."
    )
    context_type: Literal["parent"] | None = Field(
        None, exclude_if=_absent, description="`parent`: the passage is shown with its neighbors."
    )
    child_chunk_index: int | None = Field(
        None, exclude_if=_absent, description="The passage that was found, if shown with its neighbors."
    )
    tree_level: int | None = Field(
        None, exclude_if=_absent, description="Level in the document's tree, if this is a summary."
    )
    path: list[str] | None = Field(
        None, exclude_if=_absent, description="The path through the knowledge graph to this passage."
    )
    scores: LegScores | None = Field(None, exclude_if=_absent, description="With `explain`.")
    being_read: Literal[True] | None = Field(
        None,
        exclude_if=_absent,
        description="The document is not complete yet: more of it may be found soon.",
    )


class SearchItem(Source):
    """A passage that was found."""

    scores: LegScores


class SearchAnswer(BaseModel):
    """Passages, best first."""

    items: list[SearchItem]
    total: int
    took_ms: float
    supported: bool = Field(description="Whether the passages support an answer to the question.")
    period: PeriodItem | None = Field(None, exclude_if=_absent, description="The period that was searched.")
    degraded: list[str] | None = Field(
        None, exclude_if=_absent, description="What was requested but could not be done."
    )


class StepTime(BaseModel):
    """A step of the work, and how long it took."""

    step: str
    ms: float


class Explanation(BaseModel):
    """How an answer came about, with `explain`."""

    steps: list[StepTime] = Field(description="In the order in which they ended; some contain others.")


class QueryAnswer(BaseModel):
    """An answer with its sources."""

    answer: str
    sources: list[Source]
    confidence: float = Field(
        description="The probability that the answer is right, 0 for a refusal: the mean of the sources' "
        "scores, which are calibrated to it."
    )
    model_used: str
    tokens_used: int | None = Field(
        description="Prompt and output tokens of all model calls; null if the runtime doesn't report them."
    )
    output_tokens: int | None = Field(None, description="The output tokens among them.")
    model_calls: int = Field(description="How often the model was asked.")
    method: str
    method_details: dict[str, Any]
    explain: Explanation | None = Field(None, exclude_if=_absent)
