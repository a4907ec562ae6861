"""Guards against documents that are deleted while questions are being made from them."""

from __future__ import annotations

from collections.abc import Iterable

from builtin_plugins.evaluation.models import EvaluationQuestion
from builtin_plugins.rag import api as rag
from kernel.sdk import Platform, Unit


def of_kept_documents(
    platform: Platform, unit: Unit, base: str, rows: Iterable[EvaluationQuestion]
) -> list[EvaluationQuestion]:
    """These questions without those from deleted documents; the remaining documents are locked until the unit
    ends.

    A later deletion finds the questions in the database, and removes them.
    """
    listed = list(rows)
    document_ids = sorted({one for row in listed for one in _documents(row)})
    if not document_ids:
        return listed
    spec = rag.hold_documents
    remaining = platform.hooks.ask_now(
        spec, platform=platform, unit=unit, knowledge_base_id=base, document_ids=document_ids
    )
    return [row for row in listed if _documents(row) <= set(remaining or ())]


def _documents(row: EvaluationQuestion) -> set[str]:
    """What it was made from."""
    first = set[str]() if row.document_id is None else {row.document_id}
    return first | {one.document_id for one in row.others}
