"""Answers as other plugins get them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from builtin_plugins.rag.passages import Passage


@dataclass(frozen=True, slots=True)
class PipelineAnswer:
    """The whole answer of a pipeline. `model` is ``extractive`` if no model wrote it.

    `tokens_used` counts the prompts and outputs of all model calls, `output_tokens` only the outputs: 0 if no
    model was asked, None if the runtime does not report it.
    """

    text: str
    passages: Sequence[Passage]
    confidence: float
    model: str
    tokens_used: int | None
    method: str = "standard"
    output_tokens: int | None = None


PipelineEvents = AsyncGenerator[str | PipelineAnswer, None]


@dataclass(frozen=True, slots=True)
class AnswerPassages:
    """The passages that an answer will be based on; it cites the first as [1]."""

    passages: Sequence[Passage]


BaseAnswerEvents = AsyncGenerator[AnswerPassages | str | PipelineAnswer, None]


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A question of a conversation and its answer, without parts that may no longer be shown."""

    question: str
    answer: str


@runtime_checkable
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


@dataclass(frozen=True, slots=True)
class MeasuredAnswer:
    """An answer, and how it came about.

    `passages` are what the method found, best first, even if the answer is a refusal; None if the answer
    failed before that was known. `kind` is the question's complexity by rules (``simple`` …). `citations`
    counts the ``[n]`` in the answer, `citations_supported` those whose passage contains what their sentence
    says. `failed` says why there is no answer, such as a model that took too long; `unavailable` means that a
    runtime refused, which may affect other questions, too.
    """

    answer: PipelineAnswer
    passages: Sequence[Passage] | None
    refused: bool
    kind: str
    citations: int
    citations_supported: int
    model_calls: int
    degraded: Sequence[str]
    failed: str | None = None
    unavailable: bool = False
