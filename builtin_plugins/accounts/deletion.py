"""Deleting an account: nobody can use it and its row is emptied at once; a durable job removes the rest.

No HTTP here.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete

from builtin_plugins.accounts import hookspecs
from builtin_plugins.accounts.erasure import start_removal
from builtin_plugins.accounts.errors import OwnAccount, SignInAgain, StillShared, WrongPassword
from builtin_plugins.accounts.guards import (
    hold_account,
    is_sso,
    refuse_last_admin,
    refuse_last_platform_admin,
)
from builtin_plugins.accounts.listeners import tell_plugins
from builtin_plugins.accounts.password_resets import forget_resets
from builtin_plugins.accounts.passwords import PASSWORDS
from builtin_plugins.accounts.shared_things import SharedThing
from builtin_plugins.accounts.verified_addresses import forget_verified
from kernel.sdk import Account, Caller, Scope, Unauthorized, Unit, Unprocessable, audit
from kernel.sdk.accounts import LinkApproval, SetupAttempt, revoke_sessions

if TYPE_CHECKING:
    from kernel.sdk import Platform

_FRESH = 600.0  # seconds after a sign-in


async def delete_account(caller: Caller, account_id: int, heir_id: int | None = None) -> str:
    """Delete somebody's account; returns the id of the job that removes what belonged to it.

    What others use goes to the account `heir_id`. Raises NotFound, OwnAccount, LastAdmin, LastPlatformAdmin,
    StillShared, Unprocessable, Unauthorized, and whatever Conflict a plugin raises.
    """
    if caller.id == account_id:
        raise OwnAccount()
    return await caller.platform.database.write(_delete, caller, account_id, heir_id)


async def delete_own(caller: Caller, password: str | None) -> str:
    """Delete the caller's own account after a confirmation; returns the id of the job.

    The password confirms it or, if there is none, a recent sign-in. Raises WrongPassword, SignInAgain,
    Unauthorized, and the errors of `delete_account`.
    """
    if caller.id is None:
        raise Unauthorized("A service has no account")
    account = await caller.platform.database.read(lambda session: session.get_one(Account, caller.id))
    await _confirm(caller, account, password)
    return await caller.platform.database.write(_delete_confirmed, caller, account)


async def _confirm(caller: Caller, account: Account, password: str | None) -> None:
    if is_sso(account):
        if time.time() > caller.principal.claims.get("auth_time", 0) + _FRESH:
            raise SignInAgain()
        return
    passwords = caller.platform.resource(PASSWORDS)
    if password is None or not await passwords.verify(account.password_hash, password):
        raise WrongPassword()


def _delete_confirmed(unit: Unit, caller: Caller, confirmed: Account) -> str:
    """Delete it, unless its password was changed meanwhile. Raises Unauthorized."""
    if hold_account(unit, confirmed.id, caller).epoch != confirmed.epoch:
        raise Unauthorized("The session was revoked; sign in again")
    return _delete(unit, caller, confirmed.id, None)


def _delete(unit: Unit, caller: Caller, account_id: int, heir_id: int | None) -> str:
    account = hold_account(unit, account_id, caller)
    refuse_last_platform_admin(unit, account)
    refuse_last_admin(unit, account)
    account.is_active, account.deleted_at = False, unit.now()
    unit.session.flush()
    revoke_sessions(unit, account_id)
    tell_plugins(caller.platform, unit, account, "deleted", caller.origin)
    # Only now: plugins may have locked memberships in the meantime.
    heir = None if heir_id is None else _heir(unit, caller.platform, account_id, heir_id)
    _hand_over(unit, caller, account, heir)
    _forget(unit, account)
    after = {"heir_id": heir_id} if heir_id is not None else None
    audit(unit, "account.deleted", "account", account_id, after=after, origin=caller.origin)
    return start_removal(unit, account_id, owner_id=caller.id)


def _heir(unit: Unit, platform: Platform, account_id: int, heir_id: int) -> Scope:
    """The heir's teams and organizations, as its next token would list them. Raises Unprocessable."""
    account = unit.session.get(Account, heir_id)
    if account is None or not account.is_active or heir_id == account_id:
        raise Unprocessable.field(("query", "heir_id"), "must be another active account", heir_id)
    claims: dict[str, Any] = {}
    for answer in platform.hooks.ask_now(
        hookspecs.token_claims, platform=platform, unit=unit, account=account, previous=None
    ):
        claims.update(answer)
    organizations = tuple(one["id"] for one in claims.get("orgs", ()))
    return Scope(heir_id, tuple(claims.get("teams", ())), organizations)


def _hand_over(unit: Unit, caller: Caller, account: Account, heir: Scope | None) -> None:
    platform = caller.platform
    answers = platform.hooks.ask_now(
        hookspecs.hand_over_shared, platform=platform, unit=unit, account=account, heir=heir
    )
    left = [thing for things in answers for thing in things]
    if left:
        message = _refusal(left, heir, is_own=caller.id == account.id)
        raise StillShared({"message": message, "shared": [asdict(thing) for thing in left]})


def _refusal(left: list[SharedThing], heir: Scope | None, *, is_own: bool) -> str:
    named = ", ".join(f"'{thing.name}'" for thing in left[:5])
    more = f" and {len(left) - 5} more" if len(left) > 5 else ""
    if heir is not None:
        return f"The heir must be in the team or organization that uses {named}{more}"
    if is_own:
        return (
            f"Others use {named}{more}. Delete them or make them private first,"
            " or have a Platform Admin delete the account and name an heir"
        )
    return f"Others use {named}{more}. Name an heir: an account that becomes the owner"


def _forget(unit: Unit, account: Account) -> None:
    """Remove what the kernel knows about the person; the name and the address are free again."""
    forget_resets(unit, account.id)
    forget_verified(unit.session, account.id)
    for table in (LinkApproval, SetupAttempt):
        unit.session.execute(delete(table).where(table.account_id == account.id))
    # Nobody else can have this name or address: names have no spaces, and addresses have an @.
    name = f"deleted account #{account.id}"
    account.username = account.username_key = account.email = account.email_key = name
    account.password_hash = account.sso_issuer = account.sso_subject = account.linked_at = None
    account.role, account.platform_admin, account.must_change_password = "user", False, False
    unit.session.flush()
