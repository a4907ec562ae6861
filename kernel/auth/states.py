"""The account behind each token, checked on every request and remembered for at most two seconds.

A change of an account is heard through a notice (`kernel.notices`) well within a second; the bounded age
covers a lost one (design.md section 3).
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from sqlalchemy import select

from kernel.auth.models import Account
from kernel.db.engine import Database

TOPIC = "account"
_CACHE_SIZE = 50_000


@dataclass(frozen=True, slots=True)
class AccountState:
    """What a request needs to know of an account."""

    id: int
    username: str
    role: str
    platform_admin: bool
    is_active: bool
    epoch: int


class AccountStates:
    """Reads account states, one query for all who ask for the same account at once."""

    def __init__(self, database: Database, max_age: float) -> None:
        self._database = database
        self._max_age = max_age
        self._states: dict[int, tuple[AccountState | None, float]] = {}
        self._loading: dict[int, asyncio.Task[AccountState | None]] = {}
        self._generation: dict[int, int] = {}

    async def get(self, account_id: int) -> AccountState | None:
        """The state of an account; None where there is none."""
        known = self._states.get(account_id)
        if known is not None and known[1] > time.monotonic():
            return known[0]
        task = self._loading.get(account_id)
        if task is None:
            task = asyncio.create_task(self._load(account_id))
            self._loading[account_id] = task
            task.add_done_callback(lambda done: self._forget_task(account_id, done))
        return await asyncio.shield(task)

    def peek(self, account_id: int) -> AccountState | None:
        """The state if it is known and fresh enough; None says nothing."""
        known = self._states.get(account_id)
        return known[0] if known is not None and known[1] > time.monotonic() else None

    def invalidate(self, key: str) -> None:
        """Forget one account (its id as text), also for a query that is under way."""
        if key.isdecimal():
            account_id = int(key)
            self._states.pop(account_id, None)
            self._loading.pop(account_id, None)
            self._generation[account_id] = self._generation.get(account_id, 0) + 1

    def clear(self) -> None:
        """Forget every account."""
        self._states.clear()
        self._loading.clear()

    def _forget_task(self, account_id: int, task: asyncio.Task[AccountState | None]) -> None:
        if self._loading.get(account_id) is task:
            del self._loading[account_id]

    async def _load(self, account_id: int) -> AccountState | None:
        generation = self._generation.get(account_id, 0)
        asked = time.monotonic()
        async with self._database.read() as session:
            account = await session.get(Account, account_id)
        state = None if account is None else state_of(account)
        if self._generation.get(account_id, 0) == generation:
            if len(self._states) >= _CACHE_SIZE:
                self._states.clear()
                self._generation.clear()
            self._states[account_id] = (state, asked + self._max_age)
        return state

    async def is_platform_admin(self, account_id: int) -> bool:
        """The flag as the database has it now (spec 5.7), past every cache."""
        async with self._database.read() as session:
            query = select(Account.platform_admin).where(Account.id == account_id, Account.is_active)
            return bool(await session.scalar(query))


def state_of(account: Account) -> AccountState:
    """The state of a loaded account."""
    return AccountState(
        account.id, account.username, account.role, account.platform_admin, account.is_active, account.epoch
    )
