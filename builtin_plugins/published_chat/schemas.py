"""Bodies and answers of the published chat (spec 2.11, decisions.md)."""

from __future__ import annotations

import json
from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from builtin_plugins.published_chat import origins
from kernel.sdk import READABLE, Body, PageQuery, example

_MAX_CONFIG_CHARS = 20_000

State = Literal[
    "open",
    "disabled",
    "owner_inactive",
    "pipeline_gone",
    "no_knowledge_base",
    "publishing_not_allowed",
    "method_gone",
]
Rating = Literal["up", "down"]
Many = Annotated[int, Field(ge=1, le=2**31 - 1)]
PerMinute = Annotated[int, Field(ge=1, le=600)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), READABLE]
PipelineId = Annotated[str, StringConstraints(min_length=1, max_length=255)]
ConversationId = Annotated[str, StringConstraints(min_length=1, max_length=255)]


def _checked_origins(text: str | None) -> str | None:
    origins.parse(text)
    return text


Origins = Annotated[
    Annotated[str, StringConstraints(max_length=2000)] | None,
    AfterValidator(_checked_origins),
    Field(
        description="Origins of the pages that can use the chat, separated by commas or spaces; * is any. "
        "Without one, no page can."
    ),
]


class RagConfig(BaseModel):
    """How the pipeline is asked, and what the widget says. Other fields are kept, and not used."""

    model_config = ConfigDict(extra="allow")

    method: Annotated[str, StringConstraints(max_length=32)] | None = Field(
        None, description="Method used for every question, built in or from a plugin; upper or lower case."
    )
    top_k: Annotated[int, Field(ge=1, le=100)] | None = None
    hybrid: bool | None = None
    rerank: bool | None = None
    compress: bool | None = None
    parent_context: bool | None = None
    llm_model: Annotated[str, StringConstraints(min_length=1, max_length=255)] | None = None
    greeting: Annotated[str, StringConstraints(max_length=500)] | None = Field(
        None, description="What the widget says before the first question."
    )
    placeholder: Annotated[str, StringConstraints(max_length=100)] | None = Field(
        None, description="Placeholder of the widget's input field."
    )

    @model_validator(mode="after")
    def _fits(self) -> RagConfig:
        if len(json.dumps(self.model_dump(exclude_unset=True), default=str)) > _MAX_CONFIG_CHARS:
            raise ValueError(f"must be at most {_MAX_CONFIG_CHARS} characters of JSON")
        return self

    def asking(self) -> dict[str, Any]:
        """The settings for the pipeline."""
        fields = {"method", "top_k", "hybrid", "rerank", "compress", "parent_context", "llm_model"}
        return self.model_dump(include=fields, exclude_none=True)


class EndpointCreate(Body):
    """A new chat."""

    model_config = example(
        name="Support",
        slug="support",
        pipeline_id="3f0c9a52-7d0e-4b1c-9a65-0c1d2e3f4a5b",
        allowed_origins="https://www.example.org",
    )

    name: Name
    slug: Annotated[str, StringConstraints(min_length=1, max_length=120, pattern=r"^[a-zA-Z0-9._-]+$")]
    pipeline_id: PipelineId
    allowed_origins: Origins = None
    rag_config: RagConfig = RagConfig()
    rate_limit_per_minute: PerMinute = Field(20, description="Most questions of all visitors in a minute.")
    daily_questions: Many | None = Field(
        None,
        description="Most questions in a day (UTC); PLATFORM_PUBLISHED_CHAT_DAILY_QUESTIONS when omitted.",
    )
    daily_tokens: Many | None = Field(
        None,
        description="Most tokens that models use in a day (UTC); PLATFORM_PUBLISHED_CHAT_DAILY_TOKENS when "
        "omitted.",
    )

    @model_validator(mode="after")
    def _no_dots_alone(self) -> EndpointCreate:
        if set(self.slug) == {"."}:
            raise ValueError("slug must not consist of dots alone")
        return self


class EndpointUpdate(Body):
    """A change. What is omitted or null stays as it is, except `allowed_origins`: null empties it."""

    model_config = example(enabled=False)

    name: Name | None = None
    pipeline_id: PipelineId | None = None
    allowed_origins: Origins = None
    rag_config: RagConfig | None = None
    rate_limit_per_minute: PerMinute | None = None
    daily_questions: Many | None = None
    daily_tokens: Many | None = None
    enabled: bool | None = None


class EndpointOut(BaseModel):
    """A chat, as its owner sees it."""

    id: str
    name: str
    slug: str
    pipeline_id: str
    allowed_origins: str | None
    rag_config: dict[str, Any]
    rate_limit_per_minute: int
    daily_questions: int
    daily_tokens: int
    enabled: bool
    state: State = Field(description="Whether visitors get answers now, or why not.")
    owner_user_id: int | None
    widget: str = Field(description="Path of the script for pages that show the chat.")
    created_at: datetime
    updated_at: datetime


class PublishingChat(BaseModel):
    """A chat that answers from a knowledge base, as the knowledge base's owner sees it."""

    id: str
    name: str
    slug: str
    owner: str | None = Field(
        description="The username of the account that published it; null once it is deactivated."
    )
    allowed_origins: str | None
    state: State
    created_at: datetime


class SessionItem(BaseModel):
    """A visitor's session."""

    session_id: str
    origin: str
    started_at: datetime
    last_activity: datetime
    turns: int
    refused: int
    up: int
    down: int


class CitedSource(BaseModel):
    """A passage that an answer cites as `[number]`."""

    number: int
    source: str
    page: int | None
    section: str | None = Field(description='The headings above what is cited: "Item 7 › Liquidity".')
    text: str


class SessionTurn(BaseModel):
    """A question, its answer, and what the visitor thinks of it."""

    turn_id: int
    conversation_id: str
    question: str
    answer: str
    withheld: bool
    sources: list[str]
    model_used: str
    tokens_used: int | None
    asked_at: datetime
    rating: Rating | None
    comment: str | None


class FeedbackItem(BaseModel):
    """A visitor's rating."""

    turn_id: int
    session_id: str
    conversation_id: str
    rating: Rating
    comment: str | None
    refused: bool
    rated_at: datetime


class FeedbackQuery(PageQuery):
    """Paging of ratings."""

    rating: Rating | None = None


class FiguresQuery(BaseModel):
    """Which days to show."""

    days: int = Field(30, ge=1, le=366, description="How many days, today included.")


class DayFigures(BaseModel):
    """What happened on one day (UTC). A refused question is one that the documents don't answer."""

    day: date
    questions: int
    answered: int
    refused: int
    failed: int
    tokens: int
    up: int
    down: int


class Figures(BaseModel):
    """Days with a question, latest first, and their sum."""

    items: list[DayFigures]
    questions: int
    answered: int
    refused: int
    failed: int
    tokens: int
    up: int
    down: int


class ChatPage(BaseModel):
    """What a page needs to show the chat."""

    slug: str
    name: str
    greeting: str | None
    placeholder: str | None


class PastMessage(BaseModel):
    """An earlier question of the session."""

    turn_id: int
    question: str
    answer: str
    rating: Rating | None


class ChatSession(BaseModel):
    """A visitor's token; it works for this chat, on pages of this origin, and for nothing else."""

    token: str
    expires_in: int = Field(description="Seconds.")
    messages: list[PastMessage] = Field(description="What was asked in this session, the last 50.")


class ChatMessage(Body):
    """A visitor's question."""

    model_config = example(question="How long do I have to return a parcel?")

    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=8000)]
    conversation_id: ConversationId | None = None


class ChatAnswer(BaseModel):
    """An answer."""

    turn_id: int
    conversation_id: str
    answer: str
    sources: list[CitedSource]
    refused: bool = Field(description="Whether the documents don't answer the question.")


class ChatFeedback(Body):
    """What a visitor thinks of an answer. A second one replaces the first."""

    model_config = example(turn_id=1, rating="up", comment="Exactly what I needed")

    turn_id: Annotated[int, Field(ge=1, lt=2**31)]
    rating: Rating
    comment: Annotated[str, StringConstraints(max_length=2000)] | None = None
    conversation_id: Annotated[str, StringConstraints(max_length=255)] | None = None
