"""Guards against changes to an account that would lock everybody out; they look at all accounts.

The caller must hold the account (`hold_account`), and with it the lock on all accounts: otherwise two
requests could each remove one of the last two administrators without seeing the other.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, or_, select

from builtin_plugins.accounts.errors import LastAdmin, LastPlatformAdmin
from kernel.sdk import Account, Caller, NotFound, Unauthorized, Unit

ACCOUNTS_LOCK = "accounts"


def hold_account(unit: Unit, account_id: int, caller: Caller) -> Account:
    """The account, held for a change by `caller` against other changes until the end of the transaction.

    Raises NotFound, and Unauthorized if the caller has lost its session or rights since it was identified.
    """
    unit.lock(ACCOUNTS_LOCK)
    if caller.id is not None:
        _refuse_revoked(unit, caller, own=caller.id == account_id)
    query = select(Account).where(Account.id == account_id, Account.deleted_at.is_(None))
    account: Account | None = unit.session.scalar(query.with_for_update())
    if account is None:
        raise NotFound("User not found")
    return account


def _refuse_revoked(unit: Unit, caller: Caller, *, own: bool) -> None:
    query = select(Account.is_active, Account.epoch, Account.platform_admin).where(Account.id == caller.id)
    current = unit.session.execute(query).one()
    principal = caller.principal
    # Personal access tokens have no claims: they outlive sessions.
    ended = bool(principal.claims) and principal.claims.get("epoch", 0) != current.epoch
    demoted = principal.platform_admin and not current.platform_admin and not own
    if ended or demoted or not current.is_active:
        raise Unauthorized("The session was revoked; sign in again")


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
