"""Ends sessions by raising the account's epoch: earlier tokens are refused (spec 5.4)."""

from __future__ import annotations

from sqlalchemy import update

from kernel.auth.models import Account
from kernel.auth.states import TOPIC
from kernel.db.engine import Unit


def revoke_sessions(unit: Unit, account_id: int) -> None:
    """End all sessions of an account with this unit's commit; other processes follow within moments."""
    raised = update(Account).where(Account.id == account_id).values(epoch=Account.epoch + 1)
    unit.session.execute(raised.execution_options(synchronize_session="fetch"))
    unit.notify(TOPIC, str(account_id))
