"""Guards against changes to an account that would lock everybody out; they look at all accounts.

The caller must hold `unit.lock("accounts")`: otherwise two requests could each remove one of the last two
administrators without seeing the other.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, or_, select

from kernel.auth.errors import LastAdmin, LastPlatformAdmin
from kernel.auth.models import Account
from kernel.db.engine import Unit

ACCOUNTS_LOCK = "accounts"


def is_sso(account: Account) -> bool:
    """Whether the account signs in through an identity provider or has no password here."""
    return account.sso_subject is not None or account.password_hash is None


def where_sso() -> ColumnElement[bool]:
    """`is_sso` as a condition for a query."""
    return or_(Account.sso_subject.is_not(None), Account.password_hash.is_(None))


def refuse_last_platform_admin(unit: Unit, account: Account) -> None:
    """Raise LastPlatformAdmin if this is the only active Platform Admin."""
    if (
        account.is_active
        and account.platform_admin
        and not _other(unit, account, Account.platform_admin.is_(True))
    ):
        raise LastPlatformAdmin()


def refuse_last_admin(unit: Unit, account: Account) -> None:
    """Raise LastAdmin if this is the only active instance administrator."""
    is_one = account.is_active and account.role == "admin"
    if is_one and not _other(unit, account, Account.role == "admin"):
        raise LastAdmin()


def _other(unit: Unit, account: Account, is_one: ColumnElement[bool]) -> bool:
    query = select(Account.id).where(Account.id != account.id, Account.is_active, is_one).limit(1)
    return unit.session.scalar(query) is not None
