"""Platform Admins: who becomes one, and who stops being one (spec 5.7).

Only the flag on the account counts. The first Platform Admin ever reaches `MILESTONE`, which closes the
bootstrap of a fresh install for good; the first grant by the operator, or the first claimed setup code,
reaches `CODES_CLOSED`, which closes setup codes (spec 3.6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.accounts.errors import AccountDisabled
from builtin_plugins.accounts.guards import ACCOUNTS_LOCK
from builtin_plugins.accounts.listeners import tell_plugins
from builtin_plugins.accounts.schemas import AccountChange
from kernel.sdk import Account, Conflict, NotFound, ResourceKey, Unit, audit
from kernel.sdk.accounts import ACCOUNT_TOPIC, Milestone, Origin, revoke_sessions

if TYPE_CHECKING:
    from kernel.sdk import Platform

MILESTONE = "platform_admin"
CODES_CLOSED = "setup_codes_closed"


class AlreadyPlatformAdmin(Conflict):
    code = "already_platform_admin"
    default_detail = "This account is already a Platform Admin"


class PlatformAdmins:
    """Grants and withdraws the flag. Each change is audited and reported in its own transaction."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._database = platform.database
        self._closed = False  # a cache: once reached, a milestone stays reached

    async def may_be_first(self, account: Account) -> bool:
        """Whether `bootstrap` could make this account the first one; mostly answered without a query."""
        return account.role == "admin" and account.linked_at is None and await self.awaits_first()

    async def awaits_first(self) -> bool:
        """Whether this is a fresh install that never had a Platform Admin."""
        if not self._closed:
            self._closed = await self._database.read(reached)
        return not self._closed

    def bootstrap(self, unit: Unit, account: Account, origin: Origin | None = None) -> None:
        """Make `account`, which signs in within `unit`, the first Platform Admin of a fresh install.

        Happens once in an instance's lifetime. `account` is changed in place, so that the token minted next
        carries the claim. A formerly local account that was linked to an identity never qualifies.
        """
        unit.lock(ACCOUNTS_LOCK)
        current = unit.session.get(Account, account.id, populate_existing=True)
        if current is None or current.epoch != account.epoch:  # revoked since the password was checked
            return
        if not current.is_active or current.role != "admin" or current.linked_at:
            return
        if reached(unit.session):
            return
        self._set_flag(unit, current, {**(origin or {}), "actor_id": current.id}, "first sign-in")
        account.platform_admin = True

    async def grant(self, username: str, origin: Origin | None = None) -> tuple[Account, bool]:
        """Make an account a Platform Admin. Returns it, and whether this is new.

        It shows in the account's token at the next refresh or sign-in. Raises NotFound, AccountDisabled.
        """
        return await self._database.write(self._grant, username, origin)

    def _grant(self, unit: Unit, username: str, origin: Origin | None) -> tuple[Account, bool]:
        unit.lock(ACCOUNTS_LOCK)
        account = find_by_username(unit.session, username)
        if account.platform_admin:
            return account, False
        if not account.is_active:
            raise AccountDisabled(f"'{account.username}' is deactivated; activate it first")
        self.set_flag(unit, account, origin, "operator")
        return account, True

    async def revoke(self, username: str, origin: Origin | None = None) -> tuple[Account, bool]:
        """Clear an account's flag and end its sessions. Returns it, and if this is new. Raises NotFound.

        Works on the last Platform Admin, too: the operator decides, and can grant again.
        """
        return await self._database.write(self._revoke, username, origin)

    def _revoke(self, unit: Unit, username: str, origin: Origin | None) -> tuple[Account, bool]:
        unit.lock(ACCOUNTS_LOCK)
        account = find_by_username(unit.session, username)
        return account, self.clear_flag(unit, account, origin)

    def set_flag(self, unit: Unit, account: Account, origin: Origin | None, way: str) -> None:
        """Make the account a Platform Admin, in a unit that holds the lock `accounts`."""
        _reach(unit.session, CODES_CLOSED)
        self._set_flag(unit, account, origin, way)

    def _set_flag(self, unit: Unit, account: Account, origin: Origin | None, way: str) -> None:
        account.platform_admin = True
        _reach(unit.session, MILESTONE)
        self._record(unit, account, origin, {"way": way})

    def clear_flag(self, unit: Unit, account: Account, origin: Origin | None) -> bool:
        """Clear the flag and end the sessions, in such a unit. Returns whether the flag was set."""
        if not account.platform_admin:
            return False
        account.platform_admin = False
        self._record(unit, account, origin, {})
        revoke_sessions(unit, account.id)
        return True

    def _record(self, unit: Unit, account: Account, origin: Origin | None, how: dict[str, Any]) -> None:
        """Write the flag, its audit entry and a notice, and let plugins forbid it."""
        unit.session.flush()
        change: AccountChange = "platform_admin_revoked"
        if account.platform_admin:
            change = "platform_admin_granted"
        audit(
            unit,
            change.replace("_admin_", "_admin."),
            "account",
            account.id,
            before={"username": account.username, "platform_admin": not account.platform_admin},
            after={"username": account.username, "platform_admin": account.platform_admin, **how},
            origin=origin,
        )
        unit.notify(ACCOUNT_TOPIC, str(account.id))
        tell_plugins(self._platform, unit, account, change, origin)

    async def list(self) -> list[Account]:
        """The Platform Admins, including deactivated ones, ordered by id."""
        return await self._database.read(_all)


PLATFORM_ADMINS: ResourceKey[PlatformAdmins] = ResourceKey("platform_admins")


def reached(session: Session, *names: str) -> bool:
    """Whether one of these milestones (by default, any) has been reached."""
    query = select(Milestone.name).limit(1)
    query = query.where(Milestone.name.in_(names)) if names else query
    return session.scalar(query) is not None


def _reach(session: Session, name: str) -> None:
    if session.get(Milestone, name) is None:
        session.add(Milestone(name=name))


def _all(session: Session) -> list[Account]:
    return list(session.scalars(select(Account).where(Account.platform_admin).order_by(Account.id)))


def find_by_username(session: Session, username: str) -> Account:
    """The account with this name. Raises NotFound."""
    named = Account.username_key == username.casefold()
    query = select(Account).where(named, Account.deleted_at.is_(None))
    account: Account | None = session.scalar(query)
    if account is None:
        raise NotFound(f"no account is called '{username}'")
    return account
