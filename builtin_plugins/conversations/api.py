"""Stored conversations, as other plugins may ask for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from kernel.sdk import hookspec

if TYPE_CHECKING:
    from builtin_plugins.rag.api import QuotedSpan
    from kernel.sdk import Caller, Platform, Unit


@dataclass(frozen=True, slots=True)
class TurnCitation:
    """A passage that an answer cites as `[number]`: its location, not its text; `quotes` are in it.

    `version` and `sha256` are those of its document; `superseded_at` is when a newer version took its place.
    """

    number: int
    source: str
    score: float
    knowledge_base_id: str | None
    document_id: str
    chunk_id: str
    page: int | None
    char_start: int
    char_end: int
    section: str | None = None
    quotes: Sequence[QuotedSpan] = ()
    version: int | None = None
    sha256: str | None = None
    superseded_at: datetime | None = None


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


@hookspec.first
def read_turns(
    caller: Caller, holder: str, conversation_id: str | None, limit: int, offset: int
) -> tuple[Sequence[RecordedTurn], int] | None:
    """A holder's answered turns that the caller may see, oldest first, and their total number."""


@hookspec.first_now
def forget_turns(platform: Platform, unit: Unit, holder: str) -> bool | None:
    """Delete all conversations of a holder and of holders named ``<holder>:…``. A plain function."""
