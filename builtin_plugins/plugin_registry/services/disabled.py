"""Which plugins are disabled, and why."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import inspect, select
from sqlalchemy.orm import Session

from kernel.sdk import Account
from kernel.sdk.operations import PluginRecord

from ..models import Switch

_BY_DEFAULT = "it is off by default, and no administrator has enabled it"


def switched_off(session: Session, records: Iterable[PluginRecord]) -> dict[str, Switch | None]:
    """Plugins that an administrator disabled, and those without a row that are off by default."""
    rows = {row.plugin: row for row in session.scalars(select(Switch))}
    never_enabled = {r.name: None for r in records if r.off_by_default and r.name not in rows}
    return {**never_enabled, **{name: row for name, row in rows.items() if not row.enabled}}


def explain_disabled(session: Session | None, records: Iterable[PluginRecord]) -> dict[str, str]:
    """The same, with reasons for people. Without a session or table, nobody has switched any yet."""
    if session is None or not inspect(session.connection()).has_table(Switch.__tablename__):
        return {record.name: _BY_DEFAULT for record in records if record.off_by_default}
    off = switched_off(session, records)
    return {name: _BY_DEFAULT if row is None else _reason(session, row) for name, row in off.items()}


def _reason(session: Session, row: Switch) -> str:
    account = None if row.changed_by is None else session.get(Account, row.changed_by)
    by = "" if row.changed_by is None else f" by account {row.changed_by}, which is gone"
    by = by if account is None else f" by {account.username}"
    return f"disabled{by} on {row.changed_at:%Y-%m-%d %H:%M} UTC"
