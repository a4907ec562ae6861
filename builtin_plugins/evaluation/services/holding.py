"""Questions made from documents, which may be deleted while the questions are being made."""

from __future__ import annotations

from collections.abc import Iterable

from builtin_plugins.evaluation import hookspecs
from builtin_plugins.evaluation.models import Question
from kernel.sdk import Platform, Unit


def of_kept_documents(platform: Platform, unit: Unit, base: str, rows: Iterable[Question]) -> list[Question]:
    """These questions without those made from documents that are gone; the others stay until the unit ends.

    A deletion that comes later finds the questions in the database, and takes them with it.
    """
    listed = list(rows)
    wanted = sorted({row.document_id for row in listed if row.document_id is not None})
    if not wanted:
        return listed
    spec = hookspecs.hold_documents
    held = platform.hooks.ask_now(
        spec, platform=platform, unit=unit, knowledge_base_id=base, document_ids=wanted
    )
    there = {None, *(held or ())}
    return [row for row in listed if row.document_id in there]
