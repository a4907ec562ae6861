"""Searches in files for responses: types and the hook for the plugin that has the files."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kernel.sdk import hookspec

if TYPE_CHECKING:
    from builtin_plugins.inference.api import ChatMessage
    from builtin_plugins.rag.api import PipelineAnswer
    from kernel.sdk import Caller


@dataclass(frozen=True, slots=True)
class FileQuestion:
    """A question to be answered from files.

    `tool` is the client's tool of the type ``file_search``, the one at `place` of the request's tools.
    `model` is who shall answer. `generation` holds `temperature` and `max_tokens` if they were sent.
    """

    question: str
    history: Sequence[ChatMessage]
    tool: Mapping[str, Any]
    place: int
    model: str | None = None
    generation: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileHit:
    """A passage of a file that an answer is based on; the score is from 0 to 1."""

    file_id: str
    filename: str
    score: float
    text: str
    attributes: Mapping[str, str | bool | float]


@dataclass(frozen=True, slots=True)
class FileHits:
    """What was searched for, and the passages that the answer will be based on: it cites the first as [1]."""

    queries: Sequence[str]
    hits: Sequence[FileHit]


@dataclass(frozen=True, slots=True)
class FileAnswer:
    """The whole answer; `hits` are in the order of its passages. `degraded`: what was not as requested."""

    answer: PipelineAnswer
    hits: Sequence[FileHit]
    degraded: Sequence[str] = ()


FileAnswerEvents = AsyncGenerator[FileHits | str | FileAnswer, None]


@hookspec.first
def answer_from_files(caller: Caller, asked: FileQuestion) -> FileAnswerEvents | None:
    """The answer to a question from files: yields `FileHits`, texts, then one `FileAnswer`.

    Raises NotFound for a store of files that the caller may not see, Unprocessable for a tool that can't be,
    Unavailable when searching or generation fails, even midway.
    """
