"""Evaluated questions: types that RAG and an evaluating plugin exchange."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernel.conversations import CitedPassage, PipelineAnswer


@dataclass(frozen=True, slots=True)
class AskConfiguration:
    """A way to ask a knowledge base, with the fields of a question's body."""

    method: str = "standard"
    hybrid: bool = True
    parent_context: bool = False
    rerank: bool = False
    top_k: int = 5


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
    passages: Sequence[CitedPassage] | None
    refused: bool
    kind: str
    citations: int
    citations_supported: int
    model_calls: int
    degraded: Sequence[str]
    failed: str | None = None
    unavailable: bool = False


@dataclass(frozen=True, slots=True)
class MeasuredChoice:
    """The configuration that measured best for questions of a kind; `evidence` (JSON) says why."""

    configuration: AskConfiguration
    evidence: Mapping[str, Any]
