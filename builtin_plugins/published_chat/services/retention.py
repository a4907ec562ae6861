"""Deletes old sessions with their conversations."""

from __future__ import annotations

import logging
from datetime import timedelta

from sqlalchemy import delete, select

from builtin_plugins.conversations import api as conversations
from builtin_plugins.published_chat.models import VisitorSession
from builtin_plugins.published_chat.services.messages import holder_of
from builtin_plugins.published_chat.settings import PublishedChatSettings
from kernel.sdk import Job, NoPayload, Platform, Unit

log = logging.getLogger("platform.published_chat")

_AT_ONCE = 100


async def tidy(platform: Platform, _payload: NoPayload) -> None:
    """Once a day: delete the sessions without a question for `retention_days`."""
    days = platform.settings_of(PublishedChatSettings).retention_days
    if not days:
        return
    removed = 0
    while some := await platform.database.write(_delete_some, platform, days):
        removed += some
    await platform.database.scrub()
    log.info("deleted %d visitors' sessions without a question for %d days", removed, days)


def _delete_some(unit: Unit, platform: Platform, days: int) -> int:
    old = VisitorSession.last_activity < unit.now() - timedelta(days=days)
    rows = unit.session.scalars(select(VisitorSession).where(old).limit(_AT_ONCE).with_for_update()).all()
    for row in rows:
        holder = holder_of(row.endpoint_id, row.id)
        platform.hooks.ask_now(conversations.forget_turns, platform=platform, unit=unit, holder=holder)
    ids = [row.id for row in rows]
    unit.session.execute(delete(VisitorSession).where(VisitorSession.id.in_(ids)))
    return len(ids)


TIDY = Job("published_chat.tidy", NoPayload, tidy, schedule="50 3 * * *", lane="quick")
