"""Accounts as the values of fields: which ones a caller sees, and their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import String, bindparam, select

from kernel.sdk import ACCOUNT_STATES, Account, Caller, Platform, Prepared, Scope, scope_of
from kernel.sdk.storage import Among, Ids

_ACCOUNT: Any = Account.__table__
_BY_NAME = Prepared(
    select(_ACCOUNT.c.id, _ACCOUNT.c.username_key).where(
        Among(_ACCOUNT.c.username_key, bindparam("wanted", type_=Ids(String))),
        _ACCOUNT.c.deleted_at.is_(None),
    )
)
_LARGEST_ID: Final = 2**31 - 1
_LONGEST_ID: Final = 10


@dataclass(frozen=True)
class People:
    """Accounts that a caller sees: their ids by their names in small letters, and their names by id."""

    ids: Mapping[str, int] = field(default_factory=dict)
    names: Mapping[int, str] = field(default_factory=dict)

    def find(self, value: object) -> int | None:
        """The account that was given by its id, its name, or as it is shown; None if the caller sees none.

        A name may be a number: what is written as a text is first of all a name.
        """
        key = _key(value)
        account_id = self.ids.get(key) if isinstance(key, str) else None
        number = _number(key)
        return account_id if account_id is not None or number not in self.names else number


def _key(raw: object) -> int | str | None:
    """An id, or a text that may be a name or an id; None for anything else."""
    value = raw.get("id") if isinstance(raw, Mapping) else raw
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    if isinstance(raw, Mapping):
        return _number(value)
    return value if isinstance(value, int) else value.strip().casefold()


def _number(key: int | str | None) -> int | None:
    """The id that was given."""
    if isinstance(key, str):
        key = int(key) if key.isascii() and key.isdecimal() and len(key) <= _LONGEST_ID else None
    return key if key is not None and 0 < key <= _LARGEST_ID else None


NOBODY: Final = People()


async def find_people(caller: Caller, values: Iterable[object]) -> People:
    """The accounts that were given and that the caller sees."""
    keys = {_key(one) for one in values}
    numbers = {number for key in keys if (number := _number(key)) is not None}
    texts = sorted(key for key in keys if isinstance(key, str) and key.isprintable())
    rows = await caller.platform.database.read(_BY_NAME.all, {"wanted": texts}) if texts else []
    by_name = {row["username_key"]: row["id"] for row in rows}
    names = await names_of(caller, {*numbers, *by_name.values()})
    return People({key: account_id for key, account_id in by_name.items() if account_id in names}, names)


async def names_of(caller: Caller, account_ids: Iterable[int]) -> dict[int, str]:
    """The names of those accounts that the caller sees: itself, members of its teams and organizations, and
    for administrators and services all.
    """
    own, names = await scope_of(caller.platform, caller.principal), {}
    for account_id in sorted(set(account_ids)):
        state = await caller.platform.resource(ACCOUNT_STATES).get(account_id)
        if state is None:
            continue
        is_own = account_id == caller.id
        if own.everything or is_own or share_a_group(own, await scope_of(caller.platform, state.principal)):
            names[account_id] = state.username
    return names


def share_a_group(one: Scope, other: Scope) -> bool:
    """Whether two accounts are in the same team or organization."""
    return bool({*one.teams} & {*other.teams} or {*one.organizations} & {*other.organizations})


async def scope_of_account(platform: Platform, account_id: int) -> Scope | None:
    """What an account sees; None if there is no such account."""
    account = await platform.resource(ACCOUNT_STATES).get(account_id)
    if account is None:
        return None
    scope = await scope_of(platform, account.principal)
    if account.is_active:
        return scope
    return Scope(scope.account_id, scope.teams, scope.organizations, nothing=True)
