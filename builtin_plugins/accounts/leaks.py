"""Who reads which rows: what queries give each account, compared with a plain calculation over the same rows.

A plugin says how its rows are read (`ReadableRows`), and registers `compare_reads` for the stage ``reads`` of
`doctor --leaks`. Everything is read in one state of the database, and nothing is written.
"""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.accounts import hookspecs
from kernel.sdk import Account, Finding, Platform, Principal, Scope, scope_of

_MOST_ACCOUNTS: Final = 1_000
_MOST_SECONDS: Final = 30.0
_MOST_NAMED: Final = 1_000


@dataclass(frozen=True, slots=True)
class StoredReader:
    """An account and where it belongs, as rows say: all that decides what it may read."""

    account_id: int
    is_admin: bool
    teams: frozenset[int]
    organizations: frozenset[int]

    def sees(self, row: Any) -> bool:
        """Whether it may read an `Owned` row."""
        if self.is_admin or row.owner_id == self.account_id or row.visibility == "shared":
            return True
        if row.visibility == "team":
            return row.team_id in self.teams
        return row.visibility == "organization" and row.organization_id in self.organizations


class ReadableRows(Protocol):
    """Rows of one kind, as they are in one state of the database."""

    def allowed(self, reader: StoredReader) -> Collection[str]:
        """The ids of those that an account may read: calculated plainly, by none of the conditions that
        queries have.
        """
        ...

    def read(self, session: Session, scope: Scope) -> Collection[str]:
        """The ids of those that queries give an account."""
        ...


class OwnedRows:
    """All rows of an `Owned` table that has an `id`."""

    def __init__(self, session: Session, table: type[Any]) -> None:
        columns = (table.id, table.owner_id, table.visibility, table.team_id, table.organization_id)
        self._table = table
        self.by_id: Mapping[str, Any] = {row.id: row for row in session.execute(select(*columns))}

    def allowed(self, reader: StoredReader) -> set[str]:
        """See `ReadableRows`."""
        return {one for one, row in self.by_id.items() if reader.sees(row)}

    def read(self, session: Session, scope: Scope) -> set[str]:
        """See `ReadableRows`."""
        return set(session.scalars(select(self._table.id).where(scope.sees(self._table))))


@dataclass
class ReadReport:
    """`leaks` are accounts and ids of rows that are read and may not be; `withheld`, the other way round."""

    accounts: int = 0
    questions: int = 0
    leaks: set[tuple[int, str]] = field(default_factory=set)
    withheld: set[tuple[int, str]] = field(default_factory=set)


def active_principals(session: Session) -> list[Principal]:
    """All accounts that can sign in."""
    rows = session.scalars(select(Account).where(Account.is_active, Account.deleted_at.is_(None)))
    return [
        Principal("user", str(one.id), one.id, one.username, one.role, one.platform_admin) for one in rows
    ]


async def compare_reads(
    platform: Platform, what: str, load: Callable[[Session], ReadableRows]
) -> AsyncIterator[Finding]:
    """One finding about rows of one kind, such as ``documents``: for all accounts, or a thousand at random.

    What differs is looked at twice, as memberships may change while they are read.
    """
    principals = await platform.database.read(active_principals)
    some = random.sample(principals, min(len(principals), _MOST_ACCOUNTS))
    report = await _look(platform, some, load)
    if report.leaks or report.withheld:
        differing = {account for account, _ in report.leaks | report.withheld}
        again = await _look(platform, [one for one in some if one.id in differing], load)
        report.leaks &= again.leaks
        report.withheld &= again.withheld
    yield _finding(what, report, len(principals))


async def _look(
    platform: Platform, principals: Sequence[Principal], load: Callable[[Session], ReadableRows]
) -> ReadReport:
    scopes = {one.id: await scope_of(platform, one) for one in principals if one.id is not None}
    admins = {one.id for one in principals if one.is_admin}
    return await platform.database.snapshot(_compare, platform, scopes, admins, load)


def _compare(
    session: Session,
    platform: Platform,
    scopes: Mapping[int, Scope],
    admins: Collection[int | None],
    load: Callable[[Session], ReadableRows],
) -> ReadReport:
    until, report, rows = time.monotonic() + _MOST_SECONDS, ReadReport(), load(session)
    places = platform.hooks.ask_now(
        hookspecs.find_places, platform=platform, session=session, account_ids=sorted(scopes)
    )
    for account, scope in scopes.items():
        if time.monotonic() > until:
            break
        teams, organizations = (places or {}).get(account, (frozenset(), frozenset()))
        reader = StoredReader(account, account in admins, teams, organizations)
        allowed, read = set(rows.allowed(reader)), set(rows.read(session, scope))
        report.accounts += 1
        report.questions += len(allowed | read)
        report.leaks |= {(account, one) for one in read - allowed}
        report.withheld |= {(account, one) for one in allowed - read}
    return report


def _finding(what: str, report: ReadReport, accounts: int) -> Finding:
    leaks, withheld = sorted(report.leaks), sorted(report.withheld)
    facts = {
        "rows": what,
        "accounts": report.accounts,
        "questions": report.questions,
        "leaks": leaks[:_MOST_NAMED],
        "withheld": withheld[:_MOST_NAMED],
    }
    counted = f"{what}: {report.accounts} of {accounts} accounts"
    if not leaks and not withheld:
        return Finding("leaks", "ok", f"{counted}, no differences", facts=facts)
    text = f"{counted}; {len(leaks)} can be read and should not, {len(withheld)} the other way round"
    account, row = (leaks or withheld)[0]
    text = f"{text}: account {account}, {row}"
    remedy = "Check again; if it stays, report it with `platformctl doctor --leaks --json`."
    return Finding("leaks", "failed" if leaks else "warning", text, remedy, facts=facts)
