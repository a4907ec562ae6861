"""Which accounts have proven their e-mail address: whoever registers may enter any.

An identity provider that says so proves it, a password chosen by a link that was mailed to it, and an
operator who creates the account on the server.
"""

from __future__ import annotations

from typing import Literal

from sqlalchemy import Select, and_, delete, select
from sqlalchemy.orm import Session

from builtin_plugins.accounts.models import VerifiedAddress
from kernel.sdk import Account, Unit, utc_now

Proof = Literal["provider", "mail", "operator"]


def note_verified(unit: Unit, account: Account, proof: Proof) -> None:
    """The address that the account has now is proven."""
    row = unit.session.get(VerifiedAddress, account.id)
    if row is None:
        row = VerifiedAddress(account_id=account.id)
        unit.session.add(row)
    elif row.email_key == account.email_key and row.proof == proof:
        return
    row.email_key, row.proof, row.verified_at = account.email_key, proof, utc_now()
    unit.session.flush()


def forget_verified(session: Session, account_id: int) -> None:
    """The account has no proven address any more."""
    session.execute(delete(VerifiedAddress).where(VerifiedAddress.account_id == account_id))


def verified_addresses() -> Select[int, str]:
    """A query for id and address (case-folded) of all active accounts whose address is proven."""
    same = and_(VerifiedAddress.account_id == Account.id, VerifiedAddress.email_key == Account.email_key)
    query = select(Account.id, Account.email_key).join(VerifiedAddress, same)
    return query.where(Account.is_active, Account.deleted_at.is_(None))
