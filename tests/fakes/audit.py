"""The audit log as the database has it, for tests in which nobody may read it over HTTP."""

from __future__ import annotations

from sqlalchemy import select

from kernel.auth.models import AuditEntry
from kernel.platform import Platform


async def audited(platform: Platform, action: str | None = None) -> list[AuditEntry]:
    """Entries, oldest first; of one action if it is named."""
    query = select(AuditEntry).order_by(AuditEntry.id)
    return await platform.database.read(
        lambda session: list(session.scalars(query if action is None else query.filter_by(action=action)))
    )
