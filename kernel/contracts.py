"""Hooks through which plugins serve plugins: nobody owns them, anybody may ask them or answer them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from kernel.hook_types import hookspec

if TYPE_CHECKING:
    from kernel.platform import Platform
    from kernel.stores.protocols import Embedded

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
