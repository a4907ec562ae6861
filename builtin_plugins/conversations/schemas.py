"""Bodies and answers of the conversations (wire-facts 11.5)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from builtin_plugins.rag.api import QuotePlace
from kernel.sdk import READABLE, Body, PageQuery, example

ConversationId = Annotated[str, StringConstraints(min_length=1, max_length=255)]
Comment = Annotated[str, StringConstraints(strip_whitespace=True, max_length=2000)]


class ConversationQuery(PageQuery):
    """Paging of conversations."""

    limit: int = Field(20, ge=1, le=100)


class WhichQuery(BaseModel):
    """Which conversation with this id: the caller's own takes precedence over shared ones."""

    pipeline_id: Annotated[str, Field(max_length=255)] | None = Field(
        None, description="Only a conversation shared with the users of this pipeline, or the caller's own."
    )


class TurnQuery(WhichQuery, PageQuery):
    """Paging of the turns of a conversation."""


class ConversationItem(BaseModel):
    """A conversation in a list."""

    conversation_id: str
    last_activity: datetime
    snippet: str = Field(description="The last question, up to 200 characters.")
    first_question: str = Field(
        description="The first question, up to 200 characters; shown as long as there is no title."
    )
    title: str | None
    shared: bool


class ConversationOut(BaseModel):
    """A conversation."""

    conversation_id: str
    title: str | None
    created_at: datetime
    last_activity: datetime
    turns: int
    own: bool = Field(description="Whether the caller started it.")
    shared: bool
    shared_pipeline_id: str | None = Field(
        description="Everybody who can use this pipeline can read and continue the conversation."
    )


class CitationOut(BaseModel):
    """Where a cited passage is. Its text is read from its document."""

    number: int
    source: str
    knowledge_base_id: str | None
    document_id: str
    chunk_id: str
    page: int | None
    section: str | None = Field(None, description="The headings above what is quoted: `Item 7 › Liquidity`.")
    char_start: int
    char_end: int
    quotes: list[QuotePlace] = Field([], description="The sentences that are quoted, where that is known.")
    score: float
    version: int = Field(description="Which version of the document it is.")
    sha256: str = Field(description="The digest of that version's file.")
    superseded_at: datetime | None = Field(
        description="When a newer version of the document took its place; null if it is the newest."
    )


class TurnOut(BaseModel):
    """A question and its answer."""

    turn_id: int
    question: str
    answer: str
    withheld: bool = Field(
        description="Whether parts of the answer are missing: their document was deleted or the caller can't "
        "see it."
    )
    sources: list[CitationOut]
    pipeline_id: str
    model_used: str
    method: str
    tokens_used: int | None
    asked_by: str = Field(description="The account id of the person who asked, or the name of a service.")
    asked_at: datetime
    rating: Literal["up", "down"] | None = None
    rating_comment: str | None = None


class TurnRating(Body):
    """A reader's rating of an answer; null removes it. The last rating counts."""

    model_config = example(rating="down", comment="The newer guideline says 210 euro")

    rating: Literal["up", "down"] | None
    comment: Comment | None = Field(None, description="The reason for the rating.")


class ConversationRename(Body):
    """A new title; null removes it."""

    model_config = example(title="Hotels in Norway")

    title: (
        Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), READABLE]
        | None
    )


class Deleted(BaseModel):
    """How many conversations were deleted."""

    deleted: int


class Shared(BaseModel):
    """Whether a conversation is shared."""

    conversation_id: str
    shared: bool


class ConversationExport(ConversationOut):
    """A conversation with all of its turns."""

    items: list[TurnOut]


class ExportBundle(BaseModel):
    """Conversations in a file."""

    format: str = "platform.conversations"
    version: int = 1
    exported_at: datetime
    conversations: list[ConversationExport]
