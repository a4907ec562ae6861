"""What an administrator does to the account of somebody else: status, role, password. Knows no HTTP."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

from sqlalchemy import select

from kernel import hookspecs
from kernel.auth.audit import audit
from kernel.auth.errors import OwnAccount, SsoAccount
from kernel.auth.guards import ACCOUNTS_LOCK, is_sso, refuse_last_admin, refuse_last_platform_admin
from kernel.auth.models import Account
from kernel.auth.password_resets import forget_resets
from kernel.auth.passwords import Passwords
from kernel.auth.principals import Principal
from kernel.auth.sessions import revoke_sessions
from kernel.auth.states import TOPIC
from kernel.db.engine import Database, Unit
from kernel.errors import NotFound
from kernel.hooks import Hooks
from kernel.resource_keys import ResourceKey

Origin = dict[str, Any]
Check = Callable[[Unit, Account], Awaitable[None]]

_GENERATED_BYTES = 15  # 120 bits: 20 characters


class Administration:
    """Changes to accounts, each in one transaction with its guards, its audit entry and its revocations.

    `by` is who does it, None for the operator on the server. `check(unit, account)` runs first in the same
    transaction and raises what forbids it. Raises NotFound for an unknown account.
    """

    def __init__(self, database: Database, hooks: Hooks, passwords: Passwords) -> None:
        self._database = database
        self._hooks = hooks
        self._passwords = passwords

    async def set_active(
        self,
        account_id: int,
        is_active: bool,
        *,
        by: Principal | None,
        origin: Origin | None = None,
        check: Check | None = None,
        scope_org_id: int | None = None,
    ) -> Account:
        """Deactivate or reactivate (spec 3.3). Sessions end with a deactivation and stay ended."""
        async with self._change(account_id, check) as (unit, account):
            _refuse_own(account, by)
            if account.is_active == is_active:
                return account
            if not is_active:
                await refuse_last_platform_admin(unit, account)
                await refuse_last_admin(unit, account)
                await forget_resets(unit, account.id)
            account.is_active = is_active
            change = "activated" if is_active else "deactivated"
            await self._after(unit, account, change, revokes=not is_active)
            states = {"is_active": not is_active}, {"is_active": is_active}
            _audit(unit, change, account, states, origin, scope_org_id)
            return account

    async def set_role(
        self, account_id: int, role: str, *, by: Principal | None, origin: Origin | None = None
    ) -> Account:
        """Change the instance role. A demotion ends all sessions, a promotion none."""
        async with self._change(account_id, None) as (unit, account):
            if is_sso(account):
                raise SsoAccount("The role of this account comes from the identity provider")
            before = account.role
            if before == role:
                return account
            if before == "admin":
                await refuse_last_admin(unit, account)
            account.role = role
            demoted = before == "admin"
            await self._after(unit, account, "demoted" if demoted else "promoted", demoted)
            _audit(unit, "role_changed", account, ({"role": before}, {"role": role}), origin)
            return account

    async def reset_password(
        self,
        account_id: int,
        mode: Literal["set", "generate"],
        new_password: str | None,
        *,
        by: Principal | None,
        origin: Origin | None = None,
        check: Check | None = None,
        scope_org_id: int | None = None,
    ) -> str:
        """Give the account a temporary password, which is answered and kept nowhere. Ends all sessions."""
        given = new_password if mode == "set" else None
        password = secrets.token_urlsafe(_GENERATED_BYTES) if given is None else given
        password_hash = await self._passwords.hash(password)
        async with self._change(account_id, check) as (unit, account):
            _refuse_own(account, by)
            if is_sso(account):
                raise SsoAccount()
            account.password_hash = password_hash
            account.must_change_password = True
            await forget_resets(unit, account.id)
            await self._after(unit, account, "password_reset", True)
            states = None, {"must_change_password": True, "mode": mode}
            _audit(unit, "password_reset", account, states, origin, scope_org_id)
        return password

    @asynccontextmanager
    async def _change(self, account_id: int, check: Check | None) -> AsyncIterator[tuple[Unit, Account]]:
        """The account, held against other changes until the end of the transaction."""
        async with self._database.unit() as unit:
            await unit.lock(ACCOUNTS_LOCK)
            query = select(Account).where(Account.id == account_id).with_for_update()
            account = await unit.session.scalar(query)
            if account is None:
                raise NotFound("User not found")
            if check is not None:
                await check(unit, account)
            yield unit, account

    async def _after(self, unit: Unit, account: Account, change: str, revokes: bool) -> None:
        """Write the change, end sessions where it does, and let plugins forbid it."""
        await unit.session.flush()
        if revokes:
            await revoke_sessions(unit, account.id)
        else:
            await unit.notify(TOPIC, str(account.id))
        await self._hooks.ask(hookspecs.on_account_event, unit=unit, account=account, change=change)


ADMINISTRATION: ResourceKey[Administration] = ResourceKey("administration")


def _audit(
    unit: Unit,
    action: str,
    account: Account,
    states: tuple[dict[str, Any] | None, dict[str, Any]],
    origin: Origin | None,
    scope_org_id: int | None = None,
) -> None:
    before, after = states
    audit(
        unit,
        f"account.{action}",
        "account",
        account.id,
        before=before,
        after=after,
        origin=origin,
        scope_org_id=scope_org_id,
    )


def _refuse_own(account: Account, by: Principal | None) -> None:
    if by is not None and by.id == account.id:
        raise OwnAccount()
