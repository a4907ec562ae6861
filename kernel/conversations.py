"""Chats with models and pipelines: types that plugins exchange (`kernel.contracts`)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

ChatRole = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a chat with a model."""

    role: ChatRole
    content: str


@dataclass(frozen=True, slots=True)
class Generated:
    """A complete answer of a model: its whole text, and what the runtime reported.

    `tokens_used` counts prompt and answer, `output_tokens` only the answer; None if the runtime does not
    report it. `finish_reason` is the runtime's own word (``stop``, ``length`` …).
    """

    text: str
    tokens_used: int | None
    model: str
    finish_reason: str | None
    output_tokens: int | None = None


Generation = AsyncGenerator[str | Generated, None]


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A whole chat for a model runtime, in the words of OpenAI's chat completions.

    `messages` and `tools` have that API's form, including images and calls of earlier turns; `options` are
    its further parameters (``temperature``, ``max_completion_tokens``, ``tool_choice`` …) and those of
    Ollama's API. A runtime leaves out what it does not know. `model` None means the default. Without
    `stream`, the text comes in one piece.
    """

    messages: Sequence[Mapping[str, Any]]
    model: str | None = None
    tools: Sequence[Mapping[str, Any]] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = True


@dataclass(frozen=True, slots=True)
class Thought:
    """A piece of a model's reasoning before its answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallPart:
    """A piece of a tool call: pieces with the same `index` belong together; the first has the name.

    `arguments` is a fragment of JSON text.
    """

    index: int
    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatEnd:
    """The end of a model's turn; unknown counts of tokens are None.

    `finish_reason` is one of OpenAI's: ``stop``, ``length``, ``tool_calls`` … `logprobs` has OpenAI's entry
    for each token of the text, if the client asked for them and the runtime provides them.
    """

    model: str
    finish_reason: str
    prompt_tokens: int | None
    completion_tokens: int | None
    logprobs: Sequence[Mapping[str, Any]] = ()


ChatEvents = AsyncGenerator[str | Thought | ToolCallPart | ChatEnd, None]


@dataclass(frozen=True, slots=True)
class PipelineEntry:
    """A pipeline that a caller can ask. `own` means that it belongs to the caller or to nobody.

    `knowledge_bases` counts those of its knowledge bases that the caller may read.
    """

    id: str
    name: str
    own: bool
    created_at: datetime
    knowledge_bases: int = 0


@dataclass(frozen=True, slots=True)
class CitedPassage:
    """A passage of a document; an answer cites its first passage as [1].

    `knowledge_base_id` is None if the document has been deleted in the meantime. `page` is the page of the
    answer's quotation; without one, the page on which the passage begins, and `last_page` that on which it
    ends, if different. `char_start` and `char_end` count characters of the document's text.
    """

    text: str
    source: str
    score: float
    knowledge_base_id: str | None
    document_id: str
    chunk_id: str
    page: int | None
    char_start: int
    char_end: int
    last_page: int | None = None


@dataclass(frozen=True, slots=True)
class PipelineAnswer:
    """The whole answer of a pipeline. `model` is ``extractive`` if no model wrote it.

    `tokens_used` counts the prompts and outputs of all model calls, `output_tokens` only the outputs: 0 if no
    model was asked, None if the runtime does not report it.
    """

    text: str
    passages: Sequence[CitedPassage]
    confidence: float
    model: str
    tokens_used: int | None
    method: str = "standard"
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class DocumentEntry:
    """A document that a caller may read; `size_bytes` is that of the original."""

    knowledge_base_id: str
    document_id: str
    name: str
    content_type: str
    size_bytes: int
    uploaded_at: datetime


@dataclass(frozen=True, slots=True)
class DocumentText:
    """The text of a document, or of one of its passages, as it was read from the original."""

    name: str
    text: str


PipelineEvents = AsyncGenerator[str | PipelineAnswer, None]


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A question of a conversation and its answer, without parts that may no longer be shown."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class TurnCitation:
    """A passage that an answer cites as `[number]`: its location, not its text."""

    number: int
    source: str
    score: float
    knowledge_base_id: str | None
    document_id: str
    chunk_id: str
    page: int | None
    char_start: int
    char_end: int


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """A turn as its reader may see it. `withheld` means that parts of the answer are missing.

    `rating` is `up`, `down` or None; `rating_comment` says why.
    """

    id: int
    conversation_id: str
    question: str
    answer: str
    withheld: bool
    citations: Sequence[TurnCitation]
    pipeline_id: str
    model: str
    method: str
    tokens_used: int | None
    asked_by: str
    asked_at: datetime
    rating: str | None = None
    rating_comment: str | None = None


class OpenTurn(Protocol):
    """A question that waits for its answer; nobody can read it before `close`.

    `history` are the last turns of the conversation, oldest first.
    """

    @property
    def id(self) -> int: ...

    @property
    def history(self) -> Sequence[PastTurn]: ...

    async def close(self, answer: PipelineAnswer, method: str) -> None:
        """Store the answer. It is durable when this returns."""
        ...

    async def drop(self) -> None:
        """Forget the question: it was not answered."""
        ...
