"""The people and groups at a source, and the accounts that they are here.

A person is the account that has proven the same e-mail address, or signs in with the same subject; a group,
the people in it and in its groups. What the owner of the knowledge base says takes the place of both. Names
prove nothing, unless the owner says that groups there are groups of the sign-in (`sign_in_groups` of the
source). Whoever has no counterpart here stands for no account.
"""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Final

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from builtin_plugins.accounts import api as accounts
from builtin_plugins.rag import api as rag
from builtin_plugins.sources.errors import DocumentsUnavailable
from builtin_plugins.sources.models import CounterpartRecord, PrincipalRecord, SourceRecord
from builtin_plugins.sources.protocol import SourceDirectory, SourceGroup, SourcePerson
from builtin_plugins.sources.services.rights.readers import EVERYONE, holder_of, reader_of
from builtin_plugins.sources.services.texts import digest_of, exact, portions, storable
from kernel.sdk import Account, Platform, Unit

_AT_ONCE: Final = 500
_LONGEST_NAME: Final = 255
_SMALL: Final = str.maketrans(ascii_uppercase, ascii_lowercase)
_DESCRIBED: Final = ("principal", "name", "email_key", "issuer", "subject", "people", "groups")

Key = tuple[str, str]
"""Kind and digest of a person or group."""


def described_principals(source_id: str, directory: SourceDirectory) -> dict[Key, PrincipalRecord]:
    """The people and groups of a source as rows, which are stored nowhere yet."""
    fields = {("person", digest_of(one.id)): _person_fields(one) for one in directory.people}
    fields |= {("group", digest_of(one.id)): _group_fields(one) for one in directory.groups}
    return {
        (kind, digest): PrincipalRecord(
            id=str(uuid.uuid4()), source_id=source_id, kind=kind, digest=digest, accounts=0, **values
        )
        for (kind, digest), values in fields.items()
    }


def store_directory(unit: Unit, source: SourceRecord, directory: SourceDirectory) -> Sequence[Key]:
    """Take over all people and groups; returns those that are gone. `match_accounts` comes next."""
    mine = PrincipalRecord.source_id == source.id
    rows = {(row.kind, row.digest): row for row in unit.session.scalars(select(PrincipalRecord).where(mine))}
    described = described_principals(source.id, directory)
    gone = [key for key in rows if key not in described]
    for key in gone:
        unit.session.delete(rows[key])
    for key, fresh in described.items():
        if (known := rows.get(key)) is None:
            unit.session.add(fresh)
            continue
        for name in _DESCRIBED:
            if getattr(known, name) != getattr(fresh, name):
                setattr(known, name, getattr(fresh, name))
    unit.session.flush()
    return gone


def _person_fields(one: SourcePerson) -> dict[str, Any]:
    return {
        "principal": storable(one.id),
        "name": storable(one.name or one.id)[:_LONGEST_NAME],
        "email_key": exact(_mailbox(one.email or ""), 320),
        "issuer": exact(one.issuer, 512),
        "subject": exact(one.subject, 512),
        "people": [],
        "groups": [],
    }


def _mailbox(address: str) -> str:
    """An address without the capitals of ASCII: `ß` and `ss` are the mailboxes of different people."""
    return address.strip().translate(_SMALL)


def _group_fields(one: SourceGroup) -> dict[str, Any]:
    return {
        "principal": storable(one.id),
        "name": storable(one.name or one.id)[:_LONGEST_NAME],
        "email_key": None,
        "issuer": None,
        "subject": None,
        "people": sorted({digest_of(member) for member in one.people}),
        "groups": sorted({digest_of(member) for member in one.groups}),
    }


def match_accounts(
    unit: Unit, platform: Platform, source: SourceRecord, gone: Iterable[Key] = ()
) -> frozenset[Key]:
    """Store which accounts each person and group matches; returns those that mean everybody here."""
    mine = select(PrincipalRecord).where(PrincipalRecord.source_id == source.id)
    rows = {(row.kind, row.digest): row for row in unit.session.scalars(mine)}
    matching = Matching(platform, unit.session, source, rows)
    ids_of = matching.run()
    members: dict[str, Sequence[int]] = {reader_of(source.id, *key): () for key in gone}
    for key, row in matching.rows.items():
        ids = ids_of[key]
        number = EVERYONE if key in matching.everyone else len(ids)
        if row.accounts != number:
            row.accounts = number
        if row.has_sign_in_group != (key in matching.with_sign_in_group):
            row.has_sign_in_group = key in matching.with_sign_in_group
        members[reader_of(source.id, *key)] = sorted(ids)
    unit.session.flush()
    answer = platform.hooks.ask_now(
        rag.set_reader_members, platform=platform, unit=unit, holder=holder_of(source.id), members=members
    )
    if answer is None:
        raise DocumentsUnavailable()
    return frozenset(matching.everyone)


def everyone_of(session: Session, source_id: str) -> frozenset[Key]:
    """Kind and digest of the people and groups that are everybody here, as they were matched last."""
    mine = (PrincipalRecord.source_id == source_id) & (PrincipalRecord.accounts == EVERYONE)
    rows = session.execute(select(PrincipalRecord.kind, PrincipalRecord.digest).where(mine))
    return frozenset((row.kind, row.digest) for row in rows)


def forget_principals(unit: Unit, source: SourceRecord) -> None:
    """Nobody stands for anybody any more; what the owner has said stays."""
    unit.session.execute(delete(PrincipalRecord).where(PrincipalRecord.source_id == source.id))


class Matching:
    """Accounts by person and group of one source; `everyone`: those who turned out to be everybody here.

    `with_sign_in_group`: those with accounts that are in a group of the sign-in.
    """

    def __init__(
        self, platform: Platform, session: Session, source: SourceRecord, rows: Mapping[Key, PrincipalRecord]
    ) -> None:
        self._platform = platform
        self._session = session
        self._alike = source.sign_in_groups
        self.rows = rows
        mine = select(CounterpartRecord).where(CounterpartRecord.source_id == source.id)
        self._counterparts: dict[Key, list[CounterpartRecord]] = defaultdict(list)
        for one in session.scalars(mine):
            self._counterparts[one.kind, one.digest].append(one)
        self.everyone: set[Key] = set()
        self.with_sign_in_group: set[Key] = set()

    def run(self) -> dict[Key, set[int]]:
        """The accounts of each."""
        active = self._active(
            {one.target_id for counterparts in self._counterparts.values() for one in counterparts}
        )
        own: dict[Key, set[int]] = {key: set() for key in self.rows}
        for key in self.rows:
            for one in self._counterparts.get(key, ()):
                own[key] |= self._accounts_of(one, active)
                if one.target == "everyone":
                    self.everyone.add(key)
        unmapped = {key: row for key, row in self.rows.items() if key not in self._counterparts}
        for key, ids in self._by_address(unmapped).items():
            own[key] |= ids
        for key, ids in self._by_subject(unmapped).items():
            own[key] |= ids
        for key, ids in self._by_sign_in_group(unmapped).items():
            own[key] |= ids
            self.with_sign_in_group.add(key)
        return {key: self._reached(key, own) for key in self.rows}

    def _accounts_of(self, one: CounterpartRecord, active: set[int]) -> set[int]:
        if one.target == "account" and one.target_id in active:
            return {one.target_id}
        if one.target != "team" or one.target_id is None:
            return set()
        query = self._platform.hooks.ask_now(
            accounts.select_team_members, platform=self._platform, team_id=one.target_id
        )
        if query is None:
            return set()
        is_active = Account.is_active & Account.id.in_(query)
        return set(self._session.scalars(select(Account.id).where(is_active)))

    def _active(self, ids: set[int | None]) -> set[int]:
        active = set[int]()
        for some in portions(sorted(one for one in ids if one is not None), _AT_ONCE):
            active |= set(
                self._session.scalars(select(Account.id).where(Account.id.in_(some), Account.is_active))
            )
        return active

    def _by_address(self, rows: Mapping[Key, PrincipalRecord]) -> dict[Key, set[int]]:
        addresses = {row.email_key for row in rows.values() if row.email_key}
        holders: dict[str, int] = {}
        for some in portions(sorted(addresses), _AT_ONCE):
            keys = [one.casefold() for one in some]
            query = accounts.verified_addresses().where(Account.email_key.in_(keys))
            rows_of = self._session.execute(query.add_columns(Account.email))
            holders |= {_mailbox(row.email): row.id for row in rows_of}
        return {key: {holders[row.email_key]} for key, row in rows.items() if row.email_key in holders}

    def _by_subject(self, rows: Mapping[Key, PrincipalRecord]) -> dict[Key, set[int]]:
        keys = {(row.issuer, row.subject): key for key, row in rows.items() if row.issuer and row.subject}
        matched: dict[Key, set[int]] = {}
        for some in portions(sorted({subject for _, subject in keys if subject}), _AT_ONCE):
            columns = select(Account.id, Account.sso_issuer, Account.sso_subject)
            query = columns.where(Account.sso_subject.in_(some), Account.is_active)
            for row in self._session.execute(query):
                if (row.sso_issuer, row.sso_subject) in keys:
                    matched[keys[row.sso_issuer, row.sso_subject]] = {row.id}
        return matched

    def _by_sign_in_group(self, unmapped: Mapping[Key, PrincipalRecord]) -> dict[Key, set[int]]:
        """The accounts in the groups of the sign-in that people and groups are: said so, or alike."""
        keys_of: dict[str, set[Key]] = defaultdict(set)
        for key, counterparts in self._counterparts.items():
            for one in counterparts:
                if key in self.rows and one.target == "sign_in_group" and one.target_name is not None:
                    keys_of[one.target_name].add(key)
        for name, key in self._alike_names(unmapped):
            keys_of[name].add(key)
        query = self._platform.hooks.ask_now(accounts.select_sign_in_groups, platform=self._platform)
        matched: dict[Key, set[int]] = defaultdict(set)
        if query is None:
            return matched
        groups = query.subquery()
        for some in portions(sorted(keys_of), _AT_ONCE):
            named = select(groups.c.name, groups.c.account_id).join(
                Account, Account.id == groups.c.account_id
            )
            for name, account_id in self._session.execute(
                named.where(groups.c.name.in_(some), Account.is_active)
            ):
                for key in keys_of[name]:
                    matched[key].add(account_id)
        return matched

    def _alike_names(self, unmapped: Mapping[Key, PrincipalRecord]) -> list[tuple[str, Key]]:
        """Groups there by the name of the group of the sign-in that they are; a name of several is none's."""
        if self._alike is None:
            return []
        groups = [(key, row) for key, row in unmapped.items() if key[0] == "group"]
        if self._alike == "id":
            return [(row.principal, key) for key, row in groups if digest_of(row.principal) == key[1]]
        names = Counter(row.name for key, row in self.rows.items() if key[0] == "group")
        return [
            (row.name, key) for key, row in groups if names[row.name] == 1 and len(row.name) < _LONGEST_NAME
        ]

    def _reached(self, key: Key, own: Mapping[Key, set[int]]) -> set[int]:
        """A group's own accounts, unless the owner says what it is: then only these; however deep it goes."""
        ids, seen, left = set[int](), set[Key](), [key]
        while left:
            one = left.pop()
            row = self.rows.get(one)
            if row is None or one in seen:
                continue
            seen.add(one)
            ids |= own[one]
            if one in self.everyone:
                self.everyone.add(key)
            if one in self.with_sign_in_group:
                self.with_sign_in_group.add(key)
            if one not in self._counterparts:
                left += [("person", member) for member in row.people]
                left += [("group", member) for member in row.groups]
        return ids
