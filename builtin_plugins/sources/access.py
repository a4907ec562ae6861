"""Who sees and changes sources: whoever may change their knowledge base."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, literal, select
from sqlalchemy.orm import Session

from builtin_plugins.rag import api as rag
from builtin_plugins.sources.errors import (
    DocumentsUnavailable,
    NotSourceOwner,
    SourcedBaseNotFound,
    SourceLeaving,
    SourceNotFound,
)
from builtin_plugins.sources.models import SourceRecord
from kernel.sdk import Caller, Platform, Scope, scope_of


class SourceSight:
    """What a caller sees and may change."""

    def __init__(self, platform: Platform, scope: Scope) -> None:
        self._platform = platform
        self._scope = scope

    @property
    def bases(self) -> Select[str]:
        """The ids of the visible knowledge bases. Raises DocumentsUnavailable."""
        query = self._platform.hooks.ask_now(
            rag.select_knowledge_bases, platform=self._platform, scope=self._scope
        )
        if query is None:
            raise DocumentsUnavailable()
        return query

    @property
    def documents(self) -> Select[str]:
        """The ids of the documents that may be read. Raises DocumentsUnavailable."""
        query = self._platform.hooks.ask_now(
            rag.select_readable_documents, platform=self._platform, scope=self._scope
        )
        if query is None:
            raise DocumentsUnavailable()
        return query

    def require_visible(self, session: Session, base: str) -> None:
        """Raise SourcedBaseNotFound unless the knowledge base is visible."""
        if session.scalar(select(literal(base).in_(self.bases))) is not True:
            raise SourcedBaseNotFound()

    def require_owner(self, session: Session, base: str) -> None:
        """The same, and NotSourceOwner unless it may be changed."""
        self.require_visible(session, base)
        owns = self._platform.hooks.ask_now(
            rag.owns_knowledge_base,
            platform=self._platform,
            session=session,
            scope=self._scope,
            knowledge_base_id=base,
        )
        if not owns:
            raise NotSourceOwner()

    def source(self, session: Session, source_id: str, *, to_change: bool = False) -> SourceRecord:
        """A source that the caller may change. Raises SourceNotFound, NotSourceOwner, SourceLeaving."""
        query: Any = select(SourceRecord).where(
            SourceRecord.id == source_id, SourceRecord.knowledge_base_id.in_(self.bases)
        )
        source_record: SourceRecord | None = session.scalar(query.with_for_update() if to_change else query)
        if source_record is None:
            raise SourceNotFound()
        self.require_owner(session, source_record.knowledge_base_id)
        if to_change and source_record.leaving is not None:
            raise SourceLeaving()
        return source_record


async def source_sight_of(caller: Caller) -> SourceSight:
    """What the caller sees now."""
    return SourceSight(caller.platform, await scope_of(caller.platform, caller.principal))
