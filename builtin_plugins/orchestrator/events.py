"""What happens in a chat, as one sequence that each protocol renders in its own shape.

A chat is texts, `Thought`s, the `ToolCallPart`s of functions that the client runs itself, `ToolStep`s with
the platform's tools, `FileHits` before an answer from files, and one `Finished` at the end.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from builtin_plugins.inference import api as inference
from builtin_plugins.orchestrator.api import FileHit, FileHits

if TYPE_CHECKING:
    from builtin_plugins.rag import api as rag


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model requests; `arguments` is JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str

    def as_message_part(self) -> dict[str, Any]:
        """The call as it is written in an assistant's message."""
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class ToolStep:
    """A call of a platform tool, once when it begins and once when it ends."""

    status: Literal["running", "done", "failed"]
    tool: str
    arguments: Any
    text: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The step for clients."""
        fields = {"status": self.status, "tool": self.tool, "arguments": self.arguments}
        return fields if self.text is None else {**fields, "text": self.text}


@dataclass(frozen=True, slots=True)
class Approval:
    """A call that is waiting for the user's confirmation."""

    id: str
    tool: str
    arguments: Any
    expires_at: datetime

    def as_json(self) -> dict[str, Any]:
        """The call for clients, with the id that they send back once."""
        return {
            "id": self.id,
            "tool": self.tool,
            "arguments": self.arguments,
            "expires_at": self.expires_at.isoformat(),
        }


@dataclass
class TokenUsage:
    """Tokens of all rounds; None until a runtime has reported some."""

    prompt: int | None = None
    completion: int | None = None

    def add(self, end: inference.ChatEnd) -> None:
        """Count one turn."""
        self._count(end.prompt_tokens, end.completion_tokens)

    def add_answer(self, answer: rag.PipelineAnswer) -> None:
        """Count all calls for a pipeline's answer."""
        used, output = answer.tokens_used, answer.output_tokens
        if used is not None:
            self._count(used - (output or 0), output or 0)

    def _count(self, prompt: int | None, completion: int | None) -> None:
        if prompt is not None:
            self.prompt = (self.prompt or 0) + prompt
        if completion is not None:
            self.completion = (self.completion or 0) + completion

    def as_json(self) -> dict[str, Any] | None:
        """OpenAI's ``usage``; None if unknown."""
        if self.prompt is None and self.completion is None:
            return None
        prompt, completion = self.prompt or 0, self.completion or 0
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }


@dataclass(frozen=True)
class Finished:
    """The end: the text of the last turn, and everything that was not sent before.

    `offered` and `calls_made` are None in a chat without `platform_tools`.
    """

    model: str
    text: str
    finish_reason: str
    tokens: TokenUsage
    thought: str = ""
    calls: Sequence[ToolCall] = ()
    offered: bool | None = None
    calls_made: int | None = None
    steps: Sequence[ToolStep] = ()
    approvals: Sequence[Approval] = ()
    passages: Sequence[rag.Passage] = ()
    files: Sequence[FileHit] = ()
    """The files of the passages, in their order, in an answer from files."""
    logprobs: Sequence[Mapping[str, Any]] = ()
    degraded: Sequence[str] = ()

    @property
    def logprobs_object(self) -> dict[str, Any] | None:
        """The field ``logprobs`` of a choice."""
        return {"content": list(self.logprobs), "refusal": None} if self.logprobs else None

    def platform_fields(self) -> dict[str, Any]:
        """The platform's additions to a model's answer."""
        fields: dict[str, Any] = {}
        if self.offered is not None:
            fields["platform_tools_offered"] = self.offered
            fields["platform_tool_calls_made"] = self.calls_made or 0
        if self.steps:
            fields["platform_steps"] = [step.as_json() for step in self.steps]
        if self.approvals:
            fields["platform_approvals"] = [approval.as_json() for approval in self.approvals]
        if self.passages:
            fields["platform_sources"] = [_source(n, one) for n, one in enumerate(self.passages, 1)]
        if self.degraded:
            fields["platform_degraded"] = list(self.degraded)
        return fields


Event = str | inference.Thought | inference.ToolCallPart | ToolStep | FileHits | Finished
Events = AsyncGenerator[Event, None]


def _source(number: int, passage: rag.Passage) -> dict[str, Any]:
    section = passage.section_at(0)
    return {
        "n": number,
        "text": passage.text,
        "source": passage.source,
        "score": passage.score,
        "knowledge_base_id": passage.knowledge_base_id,
        "document_id": passage.document_id,
        "chunk_id": passage.chunk_id,
        "page": passage.page,
        **({"section": section} if section else {}),
        "char_start": passage.char_start,
        "char_end": passage.char_end,
    }
