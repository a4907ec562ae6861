"""Sign-in with an external identity that a plugin has verified (spec 3.5, 5.5, 5.6).

Nothing here knows a protocol. A plugin passes on the identity that the provider confirmed; this module finds,
links or creates the account, updates it, and opens a session.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError

from builtin_plugins.accounts.accounts import ACCOUNTS
from builtin_plugins.accounts.errors import AccountDisabled, LastAdmin
from builtin_plugins.accounts.external_names import free_email, free_username, local_name
from builtin_plugins.accounts.external_schemas import ExternalIdentity
from builtin_plugins.accounts.guards import ACCOUNTS_LOCK, refuse_last_admin
from builtin_plugins.accounts.listeners import tell_plugins
from builtin_plugins.accounts.platform_admins import PLATFORM_ADMINS
from builtin_plugins.accounts.schemas import AccountChange
from builtin_plugins.accounts.verified_addresses import forget_verified, note_verified
from kernel.sdk import Account, Unavailable, Unit, audit, utc_now
from kernel.sdk.accounts import (
    ACCOUNT_TOPIC,
    LinkApproval,
    Origin,
    PasswordReset,
    revoke_sessions,
)

if TYPE_CHECKING:
    from kernel.sdk import Platform

log = logging.getLogger("platform.auth")


NoteGroups: TypeAlias = "Callable[[Unit, Account], bool]"
"""Stores the groups of a sign-in; returns whether they are others than before."""

_TRIES = 3  # a registration may take the same name at the same moment


async def sign_in_external(
    platform: Platform,
    identity: ExternalIdentity,
    origin: Origin,
    note_groups: NoteGroups | None = None,
) -> tuple[Account, str]:
    """Sign in with an identity that the plugin has verified. Returns the account and a token.

    `note_groups` stores what the provider says of the account's groups, in the transaction of the sign-in.

    The account is created at the first sign-in, or linked if the operator approved that. Its username, e-mail
    and role follow the provider at each sign-in. Accounts are never matched by e-mail. Raises
    AccountDisabled.
    """
    for _ in range(_TRIES):
        try:
            account = await platform.database.write(_settle, platform, identity, origin, note_groups)
        except IntegrityError:
            continue
        return account, await platform.resource(ACCOUNTS).open_session(account, origin)
    raise Unavailable("The account could not be created; try again")


def end_external_sessions(unit: Unit, issuer: str, subject: str, origin: Origin) -> bool:
    """End all sessions of an identity's account with this unit's commit. Returns whether it has one."""
    account = _find(unit, issuer, subject)
    if account is None:
        return False
    revoke_sessions(unit, account.id)
    audit(unit, "account.sessions_ended", "account", account.id, after={"by": issuer}, origin=origin)
    return True


def _settle(
    unit: Unit,
    platform: Platform,
    identity: ExternalIdentity,
    origin: Origin,
    note_groups: NoteGroups | None,
) -> Account:
    """Find, link or create the account; under a lock, so one sign-in at a time."""
    unit.lock(ACCOUNTS_LOCK)
    account = _account_of(unit, _SignIn(platform, unit, identity, origin), identity)
    if note_groups is not None and note_groups(unit, account):
        tell_plugins(platform, unit, account, "regrouped", origin)
    return account


def _account_of(unit: Unit, change: _SignIn, identity: ExternalIdentity) -> Account:
    account = _find(unit, identity.issuer, identity.subject)
    if account is not None:
        change.update(account)
        return account
    local = _approved_account(unit, identity)
    if local is not None:
        change.link(local)
        return local
    local = _local_account(unit, identity)
    if local is not None and change.approved(local):
        change.link(local)
        return local
    return change.create(local)


def _find(unit: Unit, issuer: str, subject: str) -> Account | None:
    query = select(Account).where(Account.sso_issuer == issuer, Account.sso_subject == subject)
    account: Account | None = unit.session.scalar(query.with_for_update())
    return account


def _approved_account(unit: Unit, identity: ExternalIdentity) -> Account | None:
    """The local account for which the operator approved this identity by its name, address or subject."""
    approvals = unit.session.scalars(select(LinkApproval).where(LinkApproval.identity.is_not(None)))
    approval = next((one for one in approvals if _names(one, identity)), None)
    return None if approval is None else unit.session.get(Account, approval.account_id, with_for_update=True)


def _names(approval: LinkApproval, identity: ExternalIdentity) -> bool:
    """Whether it is for this identity; the case of letters counts only in subjects."""
    if approval.identity is None:
        return False
    names = (identity.username, identity.email)
    return approval.identity == identity.subject or any(
        name is not None and name.casefold() == approval.identity.casefold() for name in names
    )


def _local_account(unit: Unit, identity: ExternalIdentity) -> Account | None:
    """The local account with exactly the provider's name; one that merely resembles it is somebody else's."""
    if identity.username is None or local_name(identity) != identity.username:
        return None
    query = select(Account).where(Account.username_key == identity.username.casefold())
    account: Account | None = unit.session.scalar(query.with_for_update())
    return account if account is not None and account.sso_subject is None else None


class _SignIn:
    """One sign-in within its transaction."""

    def __init__(self, platform: Platform, unit: Unit, identity: ExternalIdentity, origin: Origin) -> None:
        self._platform = platform
        self._unit = unit
        self._session = unit.session
        self._identity = identity
        self._origin = origin

    def update(self, account: Account) -> None:
        """Apply what the provider says now; fields that it leaves out stay. Raises AccountDisabled."""
        _refuse_disabled(account)
        before = _identity(account)
        if self._identity.username is not None:
            account.username = free_username(self._session, self._identity, account)
            account.username_key = account.username.casefold()
        self._take_email(account)
        self._session.flush()
        self._note_proof(account)
        if _identity(account) != before:
            self._audit("account.synced", account, before, _identity(account))
            self._unit.notify(ACCOUNT_TOPIC, str(account.id))
        if self._identity.role is not None and self._identity.role != account.role:
            self._change_role(account, self._identity.role)

    def _take_email(self, account: Account) -> None:
        if self._identity.email is not None:
            account.email = free_email(self._session, self._identity, account)
            account.email_key = account.email.casefold()

    def _note_proof(self, account: Account) -> None:
        """Only what the provider proves counts: what it doesn't say now is proven no longer."""
        identity = self._identity
        is_same = identity.email is not None and account.email_key == identity.email.casefold()
        if is_same and identity.is_email_verified:
            note_verified(self._unit, account, "provider")
        else:
            forget_verified(self._session, account.id)

    def _change_role(self, account: Account, role: str) -> None:
        """Apply the provider's role, but never demote the last active administrator; that is logged."""
        before, demoted = account.role, account.role == "admin"
        if demoted:
            try:
                refuse_last_admin(self._unit, account)
            except LastAdmin:
                log.warning(
                    "'%s' stays an administrator, although the provider says otherwise: it is the last one",
                    account.username,
                )
                self._audit(
                    "account.demotion_refused", account, {"role": before}, {"role": before, "provider": role}
                )
                return
        account.role = role
        self._session.flush()
        if demoted:
            revoke_sessions(self._unit, account.id)
        else:
            self._unit.notify(ACCOUNT_TOPIC, str(account.id))
        self._audit("account.role_changed", account, {"role": before}, {"role": role, "by": "provider"})
        self._tell(account, "demoted" if demoted else "promoted")

    def approved(self, local: Account) -> bool:
        """Whether the operator approved the link with the identity of the account's name."""
        approval = self._session.get(LinkApproval, local.id, with_for_update=True)
        return approval is not None and approval.identity is None

    def link(self, account: Account) -> None:
        """Make the local account the identity's (spec 3.5), without its password, sessions and flag."""
        _refuse_disabled(account)
        before = {**_identity(account), "role": account.role, "platform_admin": account.platform_admin}
        self._session.execute(delete(LinkApproval).where(LinkApproval.account_id == account.id))
        self._session.execute(delete(PasswordReset).where(PasswordReset.account_id == account.id))
        account.sso_issuer, account.sso_subject = self._identity.issuer, self._identity.subject
        account.linked_at = utc_now()
        account.password_hash, account.must_change_password = None, False
        account.role = self._identity.role or account.role
        self._take_email(account)
        self._session.flush()
        self._note_proof(account)
        admins = self._platform.resource(PLATFORM_ADMINS)
        if not admins.clear_flag(self._unit, account, self._origin):
            revoke_sessions(self._unit, account.id)
        after = {**_identity(account), "role": account.role, "platform_admin": False}
        self._audit("sso_link.completed", account, before, {**after, "issuer": self._identity.issuer})
        self._tell(account, "linked")

    def create(self, refused: Account | None) -> Account:
        """Create an account without a password. `refused` is a local account that already has the name."""
        if refused is not None:
            log.warning(
                "the local account '%s' was not linked: an operator has not approved it", refused.username
            )
            self._audit("sso_link.refused", refused, None, self._named())
        username = free_username(self._session, self._identity)
        email = free_email(self._session, self._identity)
        account = Account(
            username=username,
            username_key=username.casefold(),
            email=email,
            email_key=email.casefold(),
            role=self._identity.role or "user",
            sso_issuer=self._identity.issuer,
            sso_subject=self._identity.subject,
        )
        self._session.add(account)
        self._session.flush()
        self._note_proof(account)
        after = {"username": username, "role": account.role, **self._named()}
        if email != self._identity.email and self._identity.email is not None:
            after["email"] = "taken by another account"
        self._audit("account.created", account, None, after)
        self._tell(account, "created")
        self._unit.notify(ACCOUNT_TOPIC, str(account.id))
        return account

    def _named(self) -> dict[str, Any]:
        return {"issuer": self._identity.issuer, "subject": self._identity.subject}

    def _audit(
        self, action: str, account: Account, before: dict[str, Any] | None, after: dict[str, Any]
    ) -> None:
        audit(self._unit, action, "account", account.id, before=before, after=after, origin=self._origin)

    def _tell(self, account: Account, change: AccountChange) -> None:
        tell_plugins(self._platform, self._unit, account, change, self._origin)


def _refuse_disabled(account: Account) -> None:
    if not account.is_active:
        raise AccountDisabled()


def _identity(account: Account) -> dict[str, Any]:
    return {"username": account.username, "email": account.email}
