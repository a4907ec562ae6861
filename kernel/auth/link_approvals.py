"""The operator's approvals of links between local accounts and the identity provider (spec 3.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select
from sqlalchemy.orm import Session

from kernel.auth.audit import Origin, audit
from kernel.auth.errors import SsoAccount
from kernel.auth.guards import ACCOUNTS_LOCK, is_sso
from kernel.auth.models import Account, LinkApproval
from kernel.auth.platform_admins import find_by_username
from kernel.db.engine import Unit

if TYPE_CHECKING:
    from kernel.platform import Platform


async def approve(platform: Platform, username: str, origin: Origin) -> tuple[Account, bool]:
    """Let the next SSO sign-in with this name take over the account. Returns it, and whether this is new.

    Raises NotFound, or SsoAccount if the account is already linked.
    """
    return await platform.database.write(_approve, username, origin)


def _approve(unit: Unit, username: str, origin: Origin) -> tuple[Account, bool]:
    unit.lock(ACCOUNTS_LOCK)
    account = find_by_username(unit.session, username)
    if is_sso(account):
        raise SsoAccount(f"'{account.username}' already signs in through the identity provider")
    if unit.session.get(LinkApproval, account.id) is not None:
        return account, False
    unit.session.add(LinkApproval(account_id=account.id))
    _audit(unit, account, True, origin)
    return account, True


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
