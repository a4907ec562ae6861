"""What an administrator can do to other accounts: change status or role, reset the password. No HTTP here."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from builtin_plugins.accounts.errors import OwnAccount, SsoAccount
from builtin_plugins.accounts.guards import (
    hold_account,
    is_sso,
    refuse_last_admin,
    refuse_last_platform_admin,
)
from builtin_plugins.accounts.listeners import tell_plugins
from builtin_plugins.accounts.password_resets import forget_resets
from builtin_plugins.accounts.passwords import Passwords
from builtin_plugins.accounts.schemas import AccountChange
from kernel.sdk import Account, Caller, ResourceKey, Unit, audit
from kernel.sdk.accounts import ACCOUNT_TOPIC, revoke_sessions

if TYPE_CHECKING:
    from kernel.sdk import Platform

Check = Callable[[Unit, Account], None]

_GENERATED_BYTES = 15  # 120 bits: 20 characters


@dataclass(frozen=True, slots=True)
class _Act:
    """Who acts, and on what conditions."""

    caller: Caller
    check: Check | None = None
    scope_org_id: int | None = None


class Administration:
    """Changes to accounts, each in one transaction with its checks, audit entry and revocations.

    Routes decide whether the caller may, and so does `check(unit, account)`, which runs first in the same
    transaction and raises an error to refuse the change. Raises NotFound for an unknown account, and
    Unauthorized for a caller whose session was revoked in the meantime.
    """

    def __init__(self, platform: Platform, passwords: Passwords) -> None:
        self._platform = platform
        self._database = platform.database
        self._passwords = passwords

    async def set_active(
        self,
        caller: Caller,
        account_id: int,
        is_active: bool,
        *,
        check: Check | None = None,
        scope_org_id: int | None = None,
    ) -> Account:
        """Deactivate or reactivate (spec 3.3). A deactivation ends all sessions for good."""
        act = _Act(caller, check, scope_org_id)
        return await self._database.write(self._set_active, account_id, is_active, act)

    def _set_active(self, unit: Unit, account_id: int, is_active: bool, act: _Act) -> Account:
        account = _hold(unit, account_id, act)
        _refuse_own(account, act)
        if account.is_active == is_active:
            return account
        if not is_active:
            refuse_last_platform_admin(unit, account)
            refuse_last_admin(unit, account)
            forget_resets(unit, account.id)
        account.is_active = is_active
        change: AccountChange = "activated" if is_active else "deactivated"
        self._after(unit, account, change, act, revokes=not is_active)
        _audit(unit, change, account, ({"is_active": not is_active}, {"is_active": is_active}), act)
        return account

    async def set_role(self, caller: Caller, account_id: int, role: str) -> Account:
        """Change the instance role. A demotion ends all sessions, a promotion none."""
        return await self._database.write(self._set_role, account_id, role, _Act(caller))

    def _set_role(self, unit: Unit, account_id: int, role: str, act: _Act) -> Account:
        account = _hold(unit, account_id, act)
        if is_sso(account):
            raise SsoAccount("The role of this account comes from the identity provider")
        before = account.role
        if before == role:
            return account
        demoted = before == "admin"
        if demoted:
            refuse_last_admin(unit, account)
        account.role = role
        self._after(unit, account, "demoted" if demoted else "promoted", act, revokes=demoted)
        _audit(unit, "role_changed", account, ({"role": before}, {"role": role}), act)
        return account

    async def reset_password(
        self,
        caller: Caller,
        account_id: int,
        mode: Literal["set", "generate"],
        new_password: str | None,
        *,
        check: Check | None = None,
        scope_org_id: int | None = None,
    ) -> str:
        """Give the account a temporary password, which is returned but not stored. Ends all sessions."""
        fixed_password = new_password if mode == "set" else None
        password = secrets.token_urlsafe(_GENERATED_BYTES) if fixed_password is None else fixed_password
        password_hash = await self._passwords.hash(password)
        act = _Act(caller, check, scope_org_id)
        await self._database.write(self._reset_password, account_id, password_hash, mode, act)
        return password

    def _reset_password(self, unit: Unit, account_id: int, password_hash: str, mode: str, act: _Act) -> None:
        account = _hold(unit, account_id, act)
        _refuse_own(account, act)
        if is_sso(account):
            raise SsoAccount()
        account.password_hash = password_hash
        account.must_change_password = True
        forget_resets(unit, account.id)
        self._after(unit, account, "password_reset", act, revokes=True)
        _audit(unit, "password_reset", account, (None, {"must_change_password": True, "mode": mode}), act)

    def _after(
        self, unit: Unit, account: Account, change: AccountChange, act: _Act, *, revokes: bool
    ) -> None:
        """Write the change, end sessions if it `revokes` them, and let plugins forbid it."""
        unit.session.flush()
        if revokes:
            revoke_sessions(unit, account.id)
        else:
            unit.notify(ACCOUNT_TOPIC, str(account.id))
        tell_plugins(self._platform, unit, account, change, act.caller.origin)


ADMINISTRATION: ResourceKey[Administration] = ResourceKey("administration")


def _hold(unit: Unit, account_id: int, act: _Act) -> Account:
    """The account, held against other changes until the end of the transaction, once `check` agrees."""
    account = hold_account(unit, account_id, act.caller)
    if act.check is not None:
        act.check(unit, account)
    return account


def _audit(
    unit: Unit,
    action: str,
    account: Account,
    states: tuple[dict[str, Any] | None, dict[str, Any]],
    act: _Act,
) -> None:
    before, after = states
    audit(
        unit,
        f"account.{action}",
        "account",
        account.id,
        before=before,
        after=after,
        origin=act.caller.origin,
        scope_org_id=act.scope_org_id,
    )


def _refuse_own(account: Account, act: _Act) -> None:
    if act.caller.id == account.id:
        raise OwnAccount()
