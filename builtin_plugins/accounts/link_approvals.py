"""The operator's approvals of links between local accounts and the identity provider (spec 3.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.accounts.errors import SsoAccount
from builtin_plugins.accounts.guards import ACCOUNTS_LOCK, is_sso
from builtin_plugins.accounts.platform_admins import find_by_username
from kernel.sdk import Account, Conflict, Unit, audit
from kernel.sdk.accounts import LinkApproval, Origin

if TYPE_CHECKING:
    from kernel.sdk import Platform


async def approve(
    platform: Platform, username: str, origin: Origin, identity: str | None = None
) -> tuple[Account, bool]:
    """Let the next SSO sign-in with this name, or of the `identity` with this name, address or subject, take
    over the account. Returns it, and whether this is new.

    Raises NotFound, SsoAccount if the account is already linked, or Conflict if the identity was approved for
    another one.
    """
    return await platform.database.write(_approve, username, origin, identity)


def _approve(unit: Unit, username: str, origin: Origin, identity: str | None) -> tuple[Account, bool]:
    unit.lock(ACCOUNTS_LOCK)
    account = find_by_username(unit.session, username)
    if is_sso(account):
        raise SsoAccount(f"'{account.username}' already signs in through the identity provider")
    approval = unit.session.get(LinkApproval, account.id)
    if approval is not None and approval.identity == identity:
        return account, False
    if identity is not None:
        _refuse_taken(unit, account, identity)
    unit.session.merge(LinkApproval(account_id=account.id, identity=identity))
    _audit(unit, account, True, origin)
    return account, True


def _refuse_taken(unit: Unit, account: Account, identity: str) -> None:
    for other, approval in _pending(unit.session):
        if other.id != account.id and (approval.identity or "").casefold() == identity.casefold():
            raise Conflict(f"'{identity}' is approved for '{other.username}'; revoke that approval first")


async def withdraw(platform: Platform, username: str, origin: Origin) -> tuple[Account, bool]:
    """Withdraw an approval. Returns the account, and whether there was one. Raises NotFound."""
    return await platform.database.write(_withdraw, username, origin)


def _withdraw(unit: Unit, username: str, origin: Origin) -> tuple[Account, bool]:
    unit.lock(ACCOUNTS_LOCK)
    account = find_by_username(unit.session, username)
    approval = unit.session.get(LinkApproval, account.id)
    if approval is None:
        return account, False
    unit.session.delete(approval)
    _audit(unit, account, False, origin)
    return account, True


async def pending(platform: Platform) -> list[tuple[Account, LinkApproval]]:
    """Approvals that no sign-in has consumed yet, oldest first."""
    return await platform.database.read(_pending)


def _pending(session: Session) -> list[tuple[Account, LinkApproval]]:
    query = (
        select(Account, LinkApproval)
        .join(LinkApproval, LinkApproval.account_id == Account.id)
        .order_by(LinkApproval.created_at, Account.id)
    )
    return [(account, approval) for account, approval in session.execute(query)]


def _audit(unit: Unit, account: Account, approved: bool, origin: Origin) -> None:
    states = [{"username": account.username, "approved": value} for value in (not approved, approved)]
    action = "sso_link.approved" if approved else "sso_link.revoked"
    audit(unit, action, "account", account.id, before=states[0], after=states[1], origin=origin)
