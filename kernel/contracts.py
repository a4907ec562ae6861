"""Hooks through which plugins serve plugins: nobody owns them, anybody may ask them or answer them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from kernel.hook_types import hookspec

if TYPE_CHECKING:
    from kernel.auth.callers import Caller
    from kernel.http.context import Context
    from kernel.platform import Platform
    from kernel.stores.protocols import Embedded
    from kernel.tools.tool import Tool

Purpose = Literal["passage", "query"]
ChatRole = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a chat with a model."""

    role: ChatRole
    content: str


@dataclass(frozen=True, slots=True)
class Generated:
    """A finished answer of a model: its whole text, and what the runtime said about it.

    `tokens_used` counts prompt and answer; None where the runtime does not say. `finish_reason` is the
    runtime's own word (``stop``, ``length`` …).
    """

    text: str
    tokens_used: int | None
    model: str
    finish_reason: str | None


Generation = AsyncGenerator[str | Generated, None]


@dataclass(frozen=True, slots=True)
class PipelineEntry:
    """A pipeline that a caller may ask. `own`: it belongs to the caller, or to nobody."""

    id: str
    name: str
    own: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class CitedPassage:
    """A passage of a document; an answer cites the first of its passages as [1].

    `knowledge_base_id` is None where the document was deleted in between. `char_start` and `char_end` count
    characters of the document's text.
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


@dataclass(frozen=True, slots=True)
class PipelineAnswer:
    """The whole answer of a pipeline. `model` says ``extractive`` where no model wrote it."""

    text: str
    passages: Sequence[CitedPassage]
    confidence: float
    model: str
    tokens_used: int | None


PipelineEvents = AsyncGenerator[str | PipelineAnswer, None]


@hookspec.first
def embed_texts(platform: Platform, model: str, texts: Sequence[str], purpose: Purpose) -> Embedded | None:
    """Vectors of `texts` by the embedding model called `model`.

    None means "not one of my models". `purpose` tells a question from a passage, for models that treat them
    differently. Raises Unavailable when the model is known and can't be used now. A caller that finds no
    answer tells its client which model is missing.
    """


@hookspec.all
def list_embedding_models(platform: Platform) -> Sequence[str] | None:
    """Names of the embedding models that the plugin can serve now."""


@hookspec.first_now
def generate_text(
    platform: Platform,
    messages: Sequence[ChatMessage],
    model: str | None,
    temperature: float,
    max_tokens: int,
    options: Mapping[str, Any],
) -> Generation | None:
    """A model's answer to `messages`, piece by piece.

    Yields texts, then one `Generated`. None means that no model runtime is configured. `model` None takes
    the default. Nothing is sent before the first piece is awaited; closing the generator stops the model.
    Raises Unavailable when the runtime fails, also in mid-stream.
    """


@hookspec.first
def check_model_runtime(platform: Platform) -> bool | None:
    """Whether the configured model runtime answers now; None where none is configured."""


@hookspec.all(failing="skip")
def offer_tools(ctx: Context) -> Sequence[Tool] | None:
    """Tools beside the plugins' actions, for the sender of this request: pipelines, tools of other servers.

    Asked whenever somebody lists tools or calls one that is no action; answer quickly, and only what the
    sender may see. A failing implementation is reported and its tools are missing. A tool is called through
    ``platform.resource(TOOLS)`` alone, which checks its access, bounds and reports the call.
    """


@hookspec.all
def check_tool_call(ctx: Context, tool: Tool, arguments: Mapping[str, Any]) -> None:
    """A tool is about to be called, through whatever route; raise a PlatformError to refuse.

    For what is beyond the tool's access, such as licences. `arguments` are as the client sent them.
    """


@hookspec.notification
def on_tool_called(ctx: Context, tool: Tool, seconds: float, error: BaseException | None) -> None:
    """A call of a tool ended after `seconds`, with this error or a result. For counting and auditing."""


@hookspec.first
def list_pipelines(caller: Caller) -> Sequence[PipelineEntry] | None:
    """The pipelines that the caller may ask, oldest first; at most 500."""


@hookspec.first
def ask_pipeline(
    caller: Caller, pipeline_id: str, question: str, history: Sequence[ChatMessage]
) -> PipelineEvents | None:
    """A pipeline's answer to a question, piece by piece: yields texts, then one `PipelineAnswer`.

    `history` is what was said before, oldest first; a pipeline that can't use it answers the question alone.
    Raises NotFound for a pipeline that the caller may not ask, Unavailable when embedding or generation
    fails, also in mid-stream. Closing the generator stops the work.
    """
