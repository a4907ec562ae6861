"""Hooks that the RAG plugin offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from kernel.sdk import Caller, Platform, Unit, contracts, hookspec


@hookspec.declaration
def register_parsers() -> Sequence[contracts.DocumentParser]:
    """Parsers for more document types. Those of plugins are asked before the built-in ones."""


@hookspec.declaration
def register_methods() -> Sequence[contracts.QueryMethod]:
    """Further methods of answering. A name that is taken, or that another plugin has declared, is refused."""


@hookspec.all
def enhance_ranking(
    caller: Caller,
    question: str,
    passages: Sequence[contracts.CitedPassage],
    scope: contracts.RankingScope,
) -> Sequence[contracts.RankedPassage] | None:
    """New scores for passages of a ranking, and passages that it lacks, each with the way to it.

    Asked for a question or a search with `graph: true`, before reranking. `passages` come best first; those
    that the answer leaves out keep their scores. Passages outside `scope` are dropped. An implementation that
    fails or takes longer than `PLATFORM_RAG_ENHANCE_SECONDS` is skipped and named in
    `method_details.degraded`. With several, each gets the result of the one before.
    """


@hookspec.all_now
def remove_derived(
    platform: Platform, unit: Unit, knowledge_base_id: str, document_id: str | None
) -> Sequence[contracts.RemovedPart] | None:
    """A document is being deleted in this unit, or with `document_id` None its whole knowledge base.

    Returns what the plugin has of it, for the receipt: what it removes now, and what it removes when it hears
    of the deletion (`rag.document_deleted`). An error keeps everything.
    """


@hookspec.all_now
def count_derived(
    platform: Platform, session: Session, knowledge_base_id: str, document_id: str | None
) -> Mapping[str, int] | None:
    """How much data the plugin still has of a deleted document or knowledge base, by the places of
    `remove_derived`: zero where nothing is left.
    """


@hookspec.all_now
def export_derived(platform: Platform, session: Session, knowledge_base_id: str) -> Mapping[str, Any] | None:
    """The plugin's data about a knowledge base that is being exported, as JSON under the plugin's name.

    It may name documents and passages by their ids. Leave out what is derived from documents, and secrets.
    """


@hookspec.all_now
def import_derived(
    platform: Platform,
    unit: Unit,
    knowledge_base_id: str,
    parts: Mapping[str, Any],
    renamed: Mapping[str, str],
) -> None:
    """A knowledge base was imported: write what `parts` holds under the plugin's name, in this unit.

    `renamed` maps the file's ids of documents and passages to those here. The file may come from
    anybody: check everything, and raise Unprocessable for what is not valid.
    """


@hookspec.first_now
def choose_measured(
    platform: Platform, session: Session, knowledge_base_id: str, kind: str
) -> contracts.MeasuredChoice | None:
    """How to ask a knowledge base a question of this kind, by what was measured there; for `auto`."""
