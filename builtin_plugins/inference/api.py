"""What plugins ask of models, whoever runs them: vectors of texts, answers, chats."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from aiohttp import web
from pydantic import BaseModel, Field

from kernel.sdk import PROMPTLY, Context, PlatformError, Unavailable, hookspec
from kernel.sdk.http import ErrorBody, ErrorFormat, HTTPValidationError, error_response

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from kernel.sdk import Platform

log = logging.getLogger("platform.inference")

_INEXACT = 0.01  # how far a length may be from 1: more than 16-bit numbers lose
_LONGEST_NAME = 255  # the column's


@dataclass(frozen=True)
class Embedded:
    """What `embed_texts` returns: float32 vectors [n, d] of unit length, and the identity of their engine.

    `unrelated` is this model's cosine of two unrelated texts, where similarity starts. `meaning` is the share
    of the vectors in hybrid search, 0 to 1; words have the rest. `languages` are those that the model knows
    (ISO 639), None for nearly all; for a question in another one, the vectors' share is `elsewhere`.

    Raises ValueError for vectors that searches can't compare, so that the plugin that made them is reported.
    A text without any meaning may have a vector of zeros.
    """

    vectors: npt.NDArray[np.float32]
    engine: str
    unrelated: float = 0.0
    meaning: float = 0.8
    languages: frozenset[str] | None = None
    elsewhere: float = 0.2

    def __post_init__(self) -> None:
        import numpy as np

        vectors = np.asarray(self.vectors, np.float32)
        if vectors.ndim != 2:
            raise ValueError(f"the vectors must be [texts, numbers], but have the shape {vectors.shape}")
        lengths = np.linalg.norm(vectors, axis=1)
        odd = np.flatnonzero(~((abs(lengths - 1) <= _INEXACT) | (lengths == 0)))  # including NaN
        if odd.size:
            raise ValueError(f"vector {odd[0]} has the length {lengths[odd[0]]:.4g} instead of 1")
        if not (isinstance(self.engine, str) and 0 < len(self.engine) <= _LONGEST_NAME):
            raise ValueError(f"the engine must be named, in at most {_LONGEST_NAME} characters")
        object.__setattr__(self, "vectors", vectors)

    def share_in(self, language: str | None) -> float:
        """The share of the vectors for a question in `language`, None for an unknown one."""
        is_covered = self.languages is None or language is None or language in self.languages
        return self.meaning if is_covered else min(self.meaning, self.elsewhere)

    def similarity(self, cosine: float) -> float:
        """Convert a cosine to a scale on which 0 is unrelated and 1 is the same text, whatever the model."""
        return (cosine - self.unrelated) / (1.0 - self.unrelated)


ChatRole = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a chat with a model."""

    role: ChatRole
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """A complete answer of a model: its whole text, and what the runtime reported.

    `tokens_used` counts prompt and answer, `output_tokens` only the answer; None if the runtime does not
    report it. `finish_reason` is the runtime's own word (``stop``, ``length`` …).
    """

    text: str
    tokens_used: int | None
    model: str
    finish_reason: str | None
    output_tokens: int | None = None


Generation = AsyncGenerator[str | Completion, None]


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


Purpose = Literal["passage", "query"]


@hookspec.first
def embed_texts(platform: Platform, model: str, texts: Sequence[str], purpose: Purpose) -> Embedded | None:
    """Vectors of `texts`, computed by the embedding model named `model`.

    None means "not one of my models". `purpose` is for models that treat questions and passages differently.
    Raises Unavailable if a known model can't be used now. If nobody answers, the caller names the model.
    """


async def embed(
    platform: Platform, model: str, texts: Sequence[str], purpose: Purpose, refusal: type[Unavailable]
) -> Embedded:
    """One vector for each text. Raises `refusal`, or what the answering plugin raises for clients."""
    try:
        embedded = await platform.hooks.ask(
            embed_texts, platform=platform, model=model, texts=texts, purpose=purpose
        )
    except PlatformError:
        raise
    except Exception:  # boundary: another plugin's engine may fail in any way
        log.exception("embedding with '%s' failed", model)
        raise refusal(f"Embedding with '{model}' failed; the server's log says why") from None
    if embedded is None:
        raise refusal(f"The embedding model '{model}' is not available: no plugin or model runtime has it")
    if len(embedded.vectors) != len(texts):
        raise refusal(
            f"The embedding model '{model}' returned {len(embedded.vectors)} vectors for {len(texts)} texts"
        )
    return embedded


@hookspec.all(failing="skip", seconds=PROMPTLY)
def list_embedding_models(platform: Platform) -> Sequence[str] | None:
    """Names of the embedding models that the plugin can serve now."""


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """What a plugin's settings say about an embedding model; `is_offered` is None if a server may have it.

    `choices` is a sentence on what can be named instead, and how to get more.
    """

    is_offered: bool | None
    choices: str = ""


@hookspec.all(failing="skip", seconds=PROMPTLY)
def describe_embedding_model(platform: Platform, model: str) -> ModelDescription | None:
    """Whether the plugin offers an embedding model, as its settings say; nothing is opened or called."""


@hookspec.all(failing="skip", seconds=PROMPTLY)
def name_embedding_models(platform: Platform) -> Sequence[tuple[str, str]] | None:
    """The plugin's settings that name embedding models: the variable and the model of each."""


async def find_availability(platform: Platform, model: str) -> ModelDescription:
    """Whether any plugin offers an embedding model, by what `describe_embedding_model` answers.

    Of a plugin that embeds texts and describes nothing, `is_offered` stays unknown.
    """
    descriptions = await platform.hooks.ask(describe_embedding_model, platform=platform, model=model)
    describing = {item.plugin for item in platform.hooks.implementations(describe_embedding_model)}
    silent = {item.plugin for item in platform.hooks.implementations(embed_texts)} - describing
    states = {description.is_offered for description in descriptions} | ({None} if silent else set())
    is_offered = True if True in states else None if None in states else False
    choices = " ".join(description.choices for description in descriptions if description.choices)
    return ModelDescription(is_offered, choices or "No plugin in service offers an embedding model.")


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

    Yields texts, then one `Completion`. None means that no model runtime is configured. Without `model`, the
    default model is used. `options` are the runtime's own, plus OpenAI's `response_format`, which is left out
    if the runtime refuses it. Nothing is sent before the first piece is awaited; closing the generator stops
    the model. Raises Unavailable if the runtime fails, even midway, GatewayTimeout if it falls silent.
    """


@hookspec.first_now
def chat_with_model(platform: Platform, request: ChatRequest) -> ChatEvents | None:
    """A model's turn in a chat with tools to call: yields texts, thoughts, calls, then a `ChatEnd`.

    None means that no model runtime is configured. Nothing is sent before the first piece is awaited; closing
    the generator stops the model. Raises a PlatformError when the runtime fails, also in mid-stream: 404 for
    an unknown model, another 4xx for what the runtime rejects in the request, 503, 504.
    """


def has_text_model(platform: Platform) -> bool:
    """Whether a model runtime is configured. Nothing is sent to it."""
    stream = platform.hooks.ask_now(
        generate_text, platform=platform, messages=(), model=None, temperature=0.0, max_tokens=1, options={}
    )
    return stream is not None


async def write_aside(
    platform: Platform,
    rules: str,
    text: str,
    *,
    model: str | None = None,
    max_tokens: int,
    max_chars: int,
    options: Mapping[str, Any] | None = None,
) -> str | None:
    """What a model writes about a text by rules, for work beside answers; None without a model runtime.

    Without `model`, it is the one that `choose_helper_model` names. The model is stopped once it has written
    more than `max_chars`. Raises Unavailable, GatewayTimeout.
    """
    stream = platform.hooks.ask_now(
        generate_text,
        platform=platform,
        messages=(ChatMessage("system", rules), ChatMessage("user", text)),
        model=model or await platform.hooks.ask(choose_helper_model, platform=platform),
        temperature=0.0,
        max_tokens=max_tokens,
        options=options or {},
    )
    if stream is None:
        return None
    written = ""
    async with aclosing(stream) as pieces:
        async for piece in pieces:
            written += piece if isinstance(piece, str) else ""
            if len(written) > max_chars:
                break
    return written


@hookspec.all(failing="skip", seconds=PROMPTLY)
def list_chat_models(platform: Platform) -> Sequence[str] | None:
    """Names of the models that `chat_with_model` can use now; none when the runtime does not answer."""


@hookspec.first(seconds=PROMPTLY)
def choose_helper_model(platform: Platform) -> str | None:
    """The model for work beside answers: plans, checks, summaries, entities, made-up questions.

    None means the model that answers; so it is for callers who may not use the other one.
    """


@hookspec.first(seconds=PROMPTLY)
def check_model_runtime(platform: Platform) -> bool | None:
    """Whether the configured model runtime answers now; None where none is configured."""


@hookspec.all(seconds=PROMPTLY)
def check_model_call(platform: Platform, model: str) -> None:
    """A model that a plugin runs itself is about to be called; raise a PlatformError to refuse."""


@hookspec.notification(seconds=PROMPTLY)
def on_model_called(platform: Platform, model: str, seconds: float, failed: bool) -> None:
    """A call to such a model ended after `seconds`. For metrics."""


class OpenAIError(BaseModel):
    """An error as OpenAI's clients read it."""

    message: str
    type: str = Field(description="Which kind of error it is: the request's, the caller's or the server's.")
    param: str | None = Field(description="The field of the body that is wrong, if it is one.")
    code: str


class OpenAIErrorBody(ErrorBody):
    """Body of an error of a route that OpenAI's clients call."""

    error: OpenAIError


class OpenAIValidationError(HTTPValidationError):
    """Body of a 422 of a route that OpenAI's clients call."""

    error: OpenAIError


def openai_error(refused: PlatformError) -> dict[str, Any]:
    """The error in the shape of OpenAI's API, the only one whose message OpenAI's clients show."""
    detail, param = refused.detail, None
    if isinstance(detail, list) and detail and all(isinstance(one, dict) and "loc" in one for one in detail):
        fields = [".".join(str(part) for part in one["loc"][1:]) for one in detail]
        param = fields[0] or None
        detail = "; ".join(
            f"{field}: {one.get('msg')}" if field else str(one.get("msg"))
            for field, one in zip(fields, detail, strict=True)
        )
    text = detail if isinstance(detail, str) else json.dumps(detail, default=str)
    return {"message": text, "type": _openai_type(refused.status), "param": param, "code": refused.code}


def _openai_type(status: int) -> str:
    if status >= 500:
        return "server_error"
    kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    return kinds.get(status, "invalid_request_error")


def _respond(_ctx: Context, refused: PlatformError) -> web.Response:
    return error_response(refused, error=openai_error(refused))


OPENAI_ERRORS = ErrorFormat(_respond, OpenAIErrorBody, OpenAIValidationError, of_family=True)
"""Adds `error` to the platform's errors, the only place where OpenAI's clients look for the message."""
