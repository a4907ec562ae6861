"""What an organization does to the accounts of its members: reset a password, deactivate, reactivate.

The account is the whole instance's, so an organization may do it only to accounts that are in its tree and
nowhere else (spec 5.7). The rule is asked in the transaction of the change.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.tenancy.permissions import MEMBERS_MANAGE
from builtin_plugins.tenancy.services.account_authority import read_targets, refusal_to_administer
from builtin_plugins.tenancy.services.authority import read_caller
from builtin_plugins.tenancy.services.memberships import LOCK
from kernel.sdk import Account, Forbidden, Platform, Principal, ResetPasswordRequest, Unit


class Administer:
    """The check of one act on one account, made for `platform.administration`."""

    def __init__(
        self, platform: Platform, principal: Principal, organization_id: int, *, reset: bool
    ) -> None:
        self._platform = platform
        self._principal = principal
        self._organization_id = organization_id
        self._reset = reset

    async def __call__(self, unit: Unit, account: Account) -> None:
        """Raise what forbids it; the own account is left to the kernel, which answers 409."""
        await unit.lock(LOCK)
        await self._refuse(unit.session, account)

    async def foresee(self, user_id: int) -> None:
        """The same before a password is hashed.

        An id that nobody has is not managed here either, after the same work as for an account elsewhere.
        """
        async with self._platform.database.read() as session:
            account = await session.get(Account, user_id)
            await self._refuse(session, account or Account(id=user_id))

    async def _refuse(self, session: AsyncSession, account: Account) -> None:
        permissions = self._platform.permissions
        caller = await read_caller(session, self._principal, self._organization_id, permissions)
        if not caller.administers:
            raise Forbidden(f"This needs: permission {MEMBERS_MANAGE.key}")
        if account.id == caller.id:
            return
        [target] = await read_targets(session, caller, [account])
        why = refusal_to_administer(caller, target, reset=self._reset)
        if why is not None:
            raise why


async def reset_password(
    platform: Platform,
    principal: Principal,
    organization_id: int,
    user_id: int,
    wanted: ResetPasswordRequest,
    origin: dict[str, Any],
) -> str:
    """A temporary password for an account of the organization."""
    check = Administer(platform, principal, organization_id, reset=True)
    await check.foresee(user_id)
    return await platform.administration.reset_password(
        user_id,
        wanted.mode,
        wanted.new_password,
        by=principal,
        origin=origin,
        check=check,
        scope_org_id=organization_id,
    )


async def set_active(
    platform: Platform,
    principal: Principal,
    organization_id: int,
    user_id: int,
    is_active: bool,
    origin: dict[str, Any],
) -> Account:
    """Deactivate or reactivate an account of the organization, for the whole instance."""
    check = Administer(platform, principal, organization_id, reset=False)
    await check.foresee(user_id)
    return await platform.administration.set_active(
        user_id, is_active, by=principal, origin=origin, check=check, scope_org_id=organization_id
    )
