"""What an organization may do to its members' accounts: reset a password, deactivate, reactivate.

An account belongs to the whole instance, so this is limited to accounts that agreed to be managed by the
organization, and are in its tree and nowhere else (spec 5.7). The rule is checked in the transaction of the
change.
"""

from __future__ import annotations

from sqlalchemy.orm import Session

from builtin_plugins.accounts.api import ADMINISTRATION, ResetPasswordRequest
from builtin_plugins.tenancy.access.authority import read_callers_authority
from builtin_plugins.tenancy.access.changes import LOCK
from builtin_plugins.tenancy.members.account_rules import read_targets, refusal_to_administer
from builtin_plugins.tenancy.members.rules import refuse
from builtin_plugins.tenancy.permissions import MEMBERS_MANAGE
from kernel.sdk import Account, Caller, Unit


class Administer:
    """Checks one act on one account, for `ADMINISTRATION`."""

    def __init__(self, caller: Caller, organization_id: int, *, reset: bool) -> None:
        self._caller = caller
        self._organization_id = organization_id
        self._reset = reset

    def __call__(self, unit: Unit, account: Account) -> None:
        """Raise the refusal, if any; the caller's own account is left to the kernel, which answers 409."""
        unit.lock(LOCK)
        self._check(unit.session, account)

    async def foresee(self, user_id: int) -> None:
        """The same check before a password is hashed.

        An unknown id is refused as not managed here, after the same work as for an account elsewhere.
        """
        await self._caller.platform.database.read(self._check_id, user_id)

    def _check_id(self, session: Session, user_id: int) -> None:
        self._check(session, session.get(Account, user_id) or Account(id=user_id))

    def _check(self, session: Session, account: Account) -> None:
        authority = read_callers_authority(session, self._caller, self._organization_id)
        authority.require(MEMBERS_MANAGE)
        if account.id == self._caller.id:
            return
        accounts = {account.id: account.role == "admin" or bool(account.platform_admin)}
        target = read_targets(session, authority, self._organization_id, accounts)[account.id]
        refuse(refusal_to_administer(authority, target, reset=self._reset))


async def reset_password(
    caller: Caller, organization_id: int, user_id: int, body: ResetPasswordRequest
) -> str:
    """Give an account of the organization a temporary password."""
    check = Administer(caller, organization_id, reset=True)
    await check.foresee(user_id)
    return await caller.platform.resource(ADMINISTRATION).reset_password(
        caller, user_id, body.mode, body.new_password, check=check, scope_org_id=organization_id
    )


async def set_active(caller: Caller, organization_id: int, user_id: int, is_active: bool) -> Account:
    """Deactivate or reactivate an account of the organization, for the whole instance."""
    check = Administer(caller, organization_id, reset=False)
    await check.foresee(user_id)
    return await caller.platform.resource(ADMINISTRATION).set_active(
        caller, user_id, is_active, check=check, scope_org_id=organization_id
    )
