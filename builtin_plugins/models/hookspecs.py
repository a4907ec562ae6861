"""Hooks that the models plugin brings."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from typing import Any

from kernel.sdk import hookspec


@hookspec(firstresult=True)
def generate_text(
    messages: Sequence[Mapping[str, str]],
    model: str | None,
    temperature: float,
    max_tokens: int,
    options: Mapping[str, Any],
) -> AsyncGenerator[str | Mapping[str, Any], None] | None:
    """A model's answer to chat `messages` (``{"role", "content"}``), piece by piece.

    Yields texts, then one mapping: ``text`` (all of it), ``model``, ``tokens_used`` (int or None) and
    ``finish_reason``. None means that no model runtime is configured. `model` None takes the default.
    Closing the generator stops the model. Raises Unavailable when the runtime fails, also in mid-stream.
    """


@hookspec(firstresult=True)
def check_model_runtime() -> Awaitable[bool] | None:
    """Whether the configured model runtime answers now; None where none is configured."""
