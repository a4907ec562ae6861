"""Sessions end by raising the account's epoch: every token minted before is refused (spec 5.4)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import update

from kernel.auth.models import Account
from kernel.auth.states import TOPIC
from kernel.db.engine import Unit
from kernel.db.units import AsyncUnit


def revoke_sessions(unit: Unit, account_id: int) -> Any:
    """End all sessions of an account with this unit's commit, in every process within a moment.

    Awaited in a unit that awaits its statements.
    """
    if isinstance(unit, AsyncUnit):
        return _revoke(unit, account_id)
    unit.session.execute(_raised(account_id))
    unit.notify(TOPIC, str(account_id))
    return None


async def _revoke(unit: AsyncUnit, account_id: int) -> None:
    await unit.session.execute(_raised(account_id))
    await unit.notify(TOPIC, str(account_id))


def _raised(account_id: int) -> Any:
    raised = update(Account).where(Account.id == account_id).values(epoch=Account.epoch + 1)
    return raised.execution_options(synchronize_session="fetch")
