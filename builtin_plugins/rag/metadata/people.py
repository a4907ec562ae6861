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


@dataclass(frozen=True)
class People:
    """Accounts that a caller sees: by what was given for them, their ids, and their names by id."""

    ids: Mapping[str, int] = field(default_factory=dict)
    names: Mapping[int, str] = field(default_factory=dict)

    def find(self, given: object) -> int | None:
        """The account that was given by its id, its name, or as it is shown; None if the caller sees none."""
        return self.ids.get(_key(given) or "")


def _key(given: object) -> str | None:
    value = given.get("id") if isinstance(given, Mapping) else given
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    return str(value).strip().casefold()


NOBODY: Final = People()


async def find_people(caller: Caller, given: Iterable[object]) -> People:
    """The accounts that were given and that the caller sees."""
    keys = {key for one in given if (key := _key(one)) and key.isprintable()}
    numbers = {int(key) for key in keys if key.isascii() and key.isdecimal() and len(key) < 10}
    rows = await caller.platform.database.read(_BY_NAME.all, {"wanted": sorted(keys)}) if keys else []
    by_name = {row["username_key"]: row["id"] for row in rows}
    names = await names_of(caller, {*numbers, *by_name.values()})
    ids = {**{str(number): number for number in numbers}, **by_name}
    return People({key: account_id for key, account_id in ids.items() if account_id in names}, names)


async def names_of(caller: Caller, account_ids: Iterable[int]) -> dict[int, str]:
    """The names of those accounts that the caller sees: itself, members of its teams and organizations, and
    for administrators and services all.
    """
    own, found = await scope_of(caller.platform, caller.principal), {}
    for account_id in sorted(set(account_ids)):
        state = await caller.platform.resource(ACCOUNT_STATES).get(account_id)
        if state is None:
            continue
        is_own = account_id == caller.id
        if own.everything or is_own or share_a_group(own, await scope_of(caller.platform, state.principal)):
            found[account_id] = state.username
    return found


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
