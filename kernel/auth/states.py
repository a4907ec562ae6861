"""The state of the account behind each token: checked on every request, cached for at most two seconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, select, update
from sqlalchemy.orm import Session

from kernel.auth.models import Account
from kernel.auth.principals import Principal
from kernel.db.engine import Database, Unit
from kernel.libs.live_cache import LiveCache
from kernel.plugins.resource_keys import ResourceKey

TOPIC = "account"
_BATCH = 500


@dataclass(frozen=True, slots=True)
class AccountState:
    """What a request needs to know about an account."""

    id: int
    username: str
    role: str
    platform_admin: bool
    is_active: bool
    epoch: int

    @property
    def principal(self) -> Principal:
        """The account as a caller, for what is done on its behalf."""
        return Principal("user", str(self.id), self.id, self.username, self.role, self.platform_admin)


class AccountStates:
    """Current account states, cached and invalidated by notices."""

    def __init__(self, database: Database, max_age: float) -> None:
        self._database = database
        self._cache: LiveCache[int, AccountState | None] = LiveCache(self._read, max_age)

    async def get(self, account_id: int) -> AccountState | None:
        """The state of an account; None if it doesn't exist."""
        return await self._cache.get(account_id)

    def peek(self, account_id: int) -> AccountState | None:
        """The cached state if it is fresh enough; None does not mean that there is no account."""
        return self._cache.peek(account_id)

    def invalidate(self, key: str) -> None:
        """Forget one account (its id as text), and discard the result of a query for it under way."""
        if key.isdecimal():
            self._cache.invalidate(int(key))

    def clear(self) -> None:
        """Forget every account."""
        self._cache.clear()

    async def _read(self, account_id: int) -> AccountState | None:
        return await self._database.read(_state, account_id)

    async def read_epochs(self, account_ids: Iterable[int]) -> dict[int, int]:
        """The session epochs of these accounts that are active now, bypassing every cache."""
        return await self._database.read(_epochs, list(account_ids))

    async def is_platform_admin(self, account_id: int) -> bool:
        """The flag as the database has it now (spec 5.7), bypassing every cache."""
        return await self._database.read(_is_platform_admin, account_id)


ACCOUNT_STATES: ResourceKey[AccountStates] = ResourceKey("account_states")


_ACCOUNT: Any = Account.__table__.c
_STATE = select(
    _ACCOUNT.id,
    _ACCOUNT.username,
    _ACCOUNT.role,
    _ACCOUNT.platform_admin,
    _ACCOUNT.is_active,
    _ACCOUNT.epoch,
).where(_ACCOUNT.id == bindparam("account"))


def _state(session: Session, account_id: int) -> AccountState | None:
    row = session.execute(_STATE, {"account": account_id}).one_or_none()
    return None if row is None else AccountState(*row)


def _epochs(session: Session, account_ids: Sequence[int]) -> dict[int, int]:
    epochs: dict[int, int] = {}
    for start in range(0, len(account_ids), _BATCH):
        some = Account.id.in_(account_ids[start : start + _BATCH])
        rows = session.execute(select(Account.id, Account.epoch).where(some, Account.is_active))
        epochs.update({row.id: row.epoch for row in rows})
    return epochs


def _is_platform_admin(session: Session, account_id: int) -> bool:
    query = select(Account.platform_admin).where(Account.id == account_id, Account.is_active)
    return bool(session.scalar(query))


def revoke_sessions(unit: Unit, account_id: int) -> None:
    """End all sessions of an account with this unit's commit; other processes follow within moments."""
    raised = update(Account).where(Account.id == account_id).values(epoch=Account.epoch + 1)
    unit.session.execute(raised.execution_options(synchronize_session="fetch"))
    unit.notify(TOPIC, str(account_id))
