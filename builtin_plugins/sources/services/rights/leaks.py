"""Comparing what the source itself says about who may read what with what is read here."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.accounts import api as accounts
from builtin_plugins.rag import api as rag
from builtin_plugins.sources.models import ItemRecord, PrincipalRecord, SourceRecord
from builtin_plugins.sources.protocol import GuardedSource, SourceFault, SourceGrant
from builtin_plugins.sources.services.opening import item_of, open_source
from builtin_plugins.sources.services.rights.directory import Key, Matching, described_principals
from builtin_plugins.sources.services.rights.readers import principals_in, unpack
from builtin_plugins.sources.services.texts import digest_of, portions
from kernel.sdk import Finding, Platform, PlatformError, Scope, scope_of

_MOST_ACCOUNTS: Final = 1_000
_AT_ONCE: Final = 500
_MOST_NAMED: Final = 5


@dataclass
class LeakReport:
    """`leaks` are account and document ids where reading is possible here and not at the source, `withheld`
    those the other way round. Ids alone: names are no less secret than content.
    """

    questions: int = 0
    leaks: list[tuple[int, str]] = field(default_factory=list)
    withheld: list[tuple[int, str]] = field(default_factory=list)


async def compare(platform: Platform, source: SourceRecord) -> LeakReport:
    """Ask for the permissions of all documents, now, and compare them for every account.

    With more than a thousand accounts, for so many at random. Raises SourceFault.
    """
    rows = await platform.database.read(_stored, source.id)
    async with open_source(platform, source) as opened:
        guarded = cast("GuardedSource", opened)
        directory = await guarded.directory()
        grants: dict[str, SourceGrant] = {}
        for some in portions(rows, _AT_ONCE):
            grants |= await guarded.grants([item_of(row) for row in some])
    document_grants = {str(row.document_id): grants.get(row.identity, SourceGrant()) for row in rows}
    people = described_principals(source.id, directory)
    readers = await platform.database.read(_allowed, platform, source, people, document_grants)
    principals = await platform.database.read(accounts.active_principals)
    if len(principals) > _MOST_ACCOUNTS:
        principals = random.sample(principals, _MOST_ACCOUNTS)
    report = LeakReport()
    for principal in principals:
        scope = await scope_of(platform, principal)
        here = await platform.database.read(_readable, platform, source, scope)
        if here is None:
            continue
        there = {one for one, ids in readers.items() if ids is None or principal.id in ids}
        report.questions += len(readers)
        account = principal.id or 0
        report.leaks += [(account, one) for one in sorted(here & readers.keys() - there)]
        report.withheld += [(account, one) for one in sorted(there - here)]
    return report


def _stored(session: Session, source_id: str) -> Sequence[ItemRecord]:
    mine = (ItemRecord.source_id == source_id) & ItemRecord.document_id.is_not(None)
    return session.scalars(select(ItemRecord).where(mine, ItemRecord.is_gone.is_(False))).all()


def _allowed(
    session: Session,
    platform: Platform,
    source: SourceRecord,
    people: Mapping[Key, PrincipalRecord],
    document_grants: Mapping[str, SourceGrant],
) -> dict[str, set[int] | None]:
    """The accounts that may read each document by what the source says; None for all."""
    matching = Matching(platform, session, source, people)
    matched = matching.run()
    allowed: dict[str, set[int] | None] = {}
    for document, grant in document_grants.items():
        named = [(kind, digest_of(one)) for kind, one in principals_in(grant)]
        if grant.everybody or any(one in matching.everyone for one in named):
            allowed[document] = None
        else:
            allowed[document] = set[int]().union(*(matched.get(one, set()) for one in named))
    return allowed


def _readable(session: Session, platform: Platform, source: SourceRecord, scope: Scope) -> set[str] | None:
    """The source's documents that a scope reads here; None if it doesn't see the knowledge base."""
    ask = platform.hooks.ask_now
    bases = ask(rag.select_knowledge_bases, platform=platform, scope=scope)
    documents = ask(rag.select_readable_documents, platform=platform, scope=scope)
    if bases is None or documents is None:
        return None
    base = (SourceRecord.id == source.id) & SourceRecord.knowledge_base_id.in_(bases)
    if session.scalar(select(SourceRecord.id).where(base)) is None:
        return None
    mine = (ItemRecord.source_id == source.id) & ItemRecord.document_id.in_(documents)
    return {str(one) for one in session.scalars(select(ItemRecord.document_id).where(mine))}


async def find_leaks(platform: Platform) -> AsyncIterator[Finding]:
    """One finding for each guarded source."""
    for source in await platform.database.read(_guarded):
        facts = {"source": source.id}
        try:
            report = await compare(platform, source)
        except (SourceFault, PlatformError) as fault:
            text = f"{source.name}: its permissions can't be read: {fault}"
            yield Finding("leaks", "failed", text, f"platformctl sources test {source.id}", facts=facts)
            continue
        yield _finding(source, report, facts)


class StoredGrants:
    """The documents of guarded sources, with the permissions that were read at the sources last."""

    def __init__(self, session: Session, platform: Platform) -> None:
        self._platform = platform
        self._documents = rag.StoredDocuments(session)
        self._readers: dict[str, set[int] | None] = {}
        for source in _guarded(session):
            mine = PrincipalRecord.source_id == source.id
            people = {
                (row.kind, row.digest): row for row in session.scalars(select(PrincipalRecord).where(mine))
            }
            grants = {str(row.document_id): unpack(row.readers) for row in _stored(session, source.id)}
            self._readers |= _allowed(session, platform, source, people, grants)

    def allowed(self, reader: accounts.StoredReader) -> set[str]:
        """See `ReadableRows`."""
        readable = self._documents.allowed(reader) & self._readers.keys()
        return {one for one in readable if (ids := self._readers[one]) is None or reader.account_id in ids}

    def read(self, session: Session, scope: Scope) -> set[str]:
        """See `ReadableRows`."""
        return self._readers.keys() & self._documents.read(session, scope)


async def find_stored_leaks(platform: Platform) -> AsyncIterator[Finding]:
    """One finding for the documents of all guarded sources, by what is stored of their permissions."""
    load = partial(StoredGrants, platform=platform)
    async for finding in accounts.compare_reads(platform, "documents of sources", load):
        yield finding


def _guarded(session: Session) -> Sequence[SourceRecord]:
    mine = SourceRecord.is_guarded & SourceRecord.leaving.is_(None)
    return session.scalars(select(SourceRecord).where(mine).order_by(SourceRecord.created_at)).all()


def _finding(source: SourceRecord, report: LeakReport, facts: Mapping[str, str]) -> Finding:
    counted = f"{source.name}: {report.questions} questions"
    shown = {**facts, "questions": report.questions, "leaks": report.leaks, "withheld": report.withheld}
    if not report.leaks and not report.withheld:
        return Finding("leaks", "ok", f"{counted}, no differences", facts=shown)
    examples = [f"account {who}, document {one}" for who, one in report.leaks[:_MOST_NAMED]]
    text = f"{counted}; {len(report.leaks)} can be read only here, {len(report.withheld)} only there"
    remedy = "Check again in a minute: changes count within that time; then report it."
    status = "failed" if report.leaks else "warning"
    return Finding("leaks", status, ": ".join([text, *examples[:1]]), remedy, facts=shown)  # type: ignore[arg-type]
