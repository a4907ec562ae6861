"""Measured questions: the types that RAG and an evaluating plugin exchange."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernel.conversations import CitedPassage, PipelineAnswer


@dataclass(frozen=True, slots=True)
class AskConfiguration:
    """A way to ask a knowledge base, in the words of a question's body."""

    method: str = "standard"
    hybrid: bool = True
    parent_context: bool = False
    rerank: bool = False
    top_k: int = 5


@dataclass(frozen=True, slots=True)
class MeasuredAnswer:
    """An answer, and how it came about.

    `passages` are what the method found, best first, also where the answer is a refusal; None where it was
    not known when the answer failed. `kind` is how complex the question is, by rules (``simple`` …).
    `citations` counts the ``[n]`` of the answer, `citations_supported` those whose passage contains what
    their sentence says. `failed` says why there is no answer, such as a model that took too long for it;
    `unavailable`, that a runtime refused, which may be gone for other questions, too.
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
    """The configuration that was measured to suit questions of a kind; `evidence` (JSON) says why."""

    configuration: AskConfiguration
    evidence: Mapping[str, Any]
