"""The names of what the audit log says of knowledge bases, documents and pipelines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.accounts.api import AuditedTarget
from builtin_plugins.rag.models import Document, KnowledgeBase, Pipeline
from builtin_plugins.rag.rights.reading import readable
from kernel.sdk import Scope


def name_targets(
    session: Session, scope: Scope, target_type: str, ids: Sequence[str]
) -> Mapping[str, AuditedTarget]:
    """Implements `name_audited_targets`."""
    if target_type == "document":
        query = (
            select(Document.id, Document.filename, Document.knowledge_base_id)
            .join(KnowledgeBase, KnowledgeBase.id == Document.knowledge_base_id)
            .where(Document.id.in_(ids), scope.sees(KnowledgeBase), readable(scope))
        )
        return {row[0]: AuditedTarget(row[1], row[2]) for row in session.execute(query)}
    tables: Mapping[str, Any] = {"knowledge_base": KnowledgeBase, "pipeline": Pipeline}
    table = tables.get(target_type)
    if table is None:
        return {}
    named = select(table.id, table.name).where(table.id.in_(ids), scope.sees(table))
    return {row[0]: AuditedTarget(row[1]) for row in session.execute(named)}
