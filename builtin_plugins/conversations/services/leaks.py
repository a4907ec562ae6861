"""Which conversations accounts may read, calculated plainly from rows, for `doctor --leaks`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.accounts.api import StoredReader, compare_reads
from builtin_plugins.conversations.models import Thread
from builtin_plugins.conversations.services.threads import ThreadReach
from builtin_plugins.rag import api as rag
from kernel.sdk import Finding, Platform, Scope


class StoredThreads:
    """All conversations: an account reads its own, and those shared over pipelines that it sees."""

    def __init__(self, session: Session, platform: Platform) -> None:
        self._platform = platform
        self._pipelines = rag.stored_pipelines(session)
        columns = (Thread.id, Thread.holder, Thread.shared_pipeline_id)
        self._rows = session.execute(select(*columns)).all()

    def allowed(self, reader: StoredReader) -> set[str]:
        """See `ReadableRows`."""
        pipelines = self._pipelines.allowed(reader)
        return {
            str(row.id)
            for row in self._rows
            if row.holder == str(reader.account_id) or row.shared_pipeline_id in pipelines
        }

    def read(self, session: Session, scope: Scope) -> set[str]:
        """See `ReadableRows`."""
        ask = self._platform.hooks.ask_now
        pipelines = ask(rag.select_pipelines, platform=self._platform, scope=scope)
        readable = set[str]() if pipelines is None else set(session.scalars(pipelines))
        reach = ThreadReach(str(scope.account_id), readable)
        return {str(one) for one in session.scalars(select(Thread.id).where(reach.threads))}


async def find_leaks(platform: Platform) -> AsyncIterator[Finding]:
    """One finding."""
    async for finding in compare_reads(platform, "conversations", partial(StoredThreads, platform=platform)):
        yield finding
