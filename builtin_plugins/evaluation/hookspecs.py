"""Hooks for the plugin that keeps knowledge bases."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Select
from sqlalchemy.orm import Session

from kernel.sdk import Caller, Platform, Scope, Unit, contracts, hookspec


@hookspec.first
def ask_knowledge_base(
    caller: Caller, knowledge_base_id: str, question: str, configuration: contracts.AskConfiguration
) -> contracts.MeasuredAnswer | None:
    """Ask one knowledge base, and return what was found and how the answer came about, or that it failed.

    Raises NotFound for one that the caller may not see, Unavailable when nothing can be asked now.
    """


@hookspec.first_now
def select_knowledge_bases(platform: Platform, scope: Scope) -> Select[str] | None:
    """A query for the ids of the knowledge bases that a scope sees; for use as a subquery."""


@hookspec.first_now
def owns_knowledge_base(
    platform: Platform, session: Session, scope: Scope, knowledge_base_id: str
) -> bool | None:
    """Whether a scope may change a knowledge base; None where there is none of this id."""


@hookspec.first_now
def hold_documents(
    platform: Platform, unit: Unit, knowledge_base_id: str, document_ids: Sequence[str]
) -> Sequence[str] | None:
    """Which of these documents a knowledge base has; they are locked against deletion until the unit ends."""


@hookspec.first_now
def list_query_methods(platform: Platform) -> Sequence[str] | None:
    """The names of the methods that a question may use."""


@hookspec.first_now
def list_pipelines_over(
    platform: Platform, session: Session, scope: Scope, knowledge_base_id: str
) -> Sequence[str] | None:
    """The ids of the pipelines over a knowledge base that a scope sees; at most 500."""


@hookspec.all(failing="skip")
def list_rated_turns(
    caller: Caller, pipeline_ids: Sequence[str], limit: int
) -> Sequence[contracts.RecordedTurn] | None:
    """The latest turns with these pipelines that somebody rated, as far as the caller may read them."""
