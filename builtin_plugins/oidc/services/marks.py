"""Rows that expire: single-use values, and the subjects of provider sessions."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError

from builtin_plugins.oidc.models import ProviderSession, Used
from kernel.sdk import Unit

_SESSION_DAYS: Final = 30
_LOCK: Final = "oidc"


def use_up(unit: Unit, kind: str, value: str, seconds: float) -> bool:
    """Record the use of `value` for a time; False if it was already used, in any process."""
    now = unit.now()
    unit.session.execute(delete(Used).where(Used.expires_at < now))
    until = now + timedelta(seconds=seconds)
    try:
        with unit.session.begin_nested():
            unit.session.add(Used(digest=_digest(kind, value), expires_at=until))
    except IntegrityError:
        return False
    return True


def remember_session(unit: Unit, sid: str, subject: str) -> None:
    """Record the subject of a provider session; several tabs may sign in to it at the same time."""
    unit.lock(_LOCK)
    now = unit.now()
    unit.session.execute(delete(ProviderSession).where(ProviderSession.expires_at < now))
    until = now + timedelta(days=_SESSION_DAYS)
    unit.session.merge(ProviderSession(digest=_digest("sid", sid), subject=subject, expires_at=until))


def subject_of_session(unit: Unit, sid: str) -> str | None:
    """The subject of a provider session."""
    query = select(ProviderSession.subject).where(ProviderSession.digest == _digest("sid", sid))
    subject: str | None = unit.session.scalar(query)
    return subject


def _digest(kind: str, value: str) -> str:
    return hashlib.sha256(f"{kind}\n{value}".encode(errors="replace")).hexdigest()
