"""Accounts for other plugins: their administration, sign-in with an external identity, mail."""

from __future__ import annotations

from builtin_plugins.accounts.accounts import ACCOUNTS
from builtin_plugins.accounts.administration import ADMINISTRATION
from builtin_plugins.accounts.external import end_external_sessions, sign_in_external
from builtin_plugins.accounts.external_schemas import ExternalIdentity, SignInMethod
from builtin_plugins.accounts.hookspecs import (
    AuditedTarget,
    select_members,
    select_sign_in_groups,
    select_team_members,
)
from builtin_plugins.accounts.leaks import (
    OwnedRows,
    ReadableRows,
    StoredReader,
    active_principals,
    compare_reads,
)
from builtin_plugins.accounts.mail import MAIL, MailFailed
from builtin_plugins.accounts.passwords import PASSWORDS
from builtin_plugins.accounts.platform_admins import find_by_username
from builtin_plugins.accounts.schemas import (
    AccountStatusRequest,
    OrganizationMembership,
    ResetPasswordRequest,
    ResetPasswordResult,
)
from builtin_plugins.accounts.shared_things import SharedThing, hand_over_owned
from builtin_plugins.accounts.verified_addresses import verified_addresses

__all__ = [
    "ACCOUNTS",
    "ADMINISTRATION",
    "MAIL",
    "PASSWORDS",
    "AccountStatusRequest",
    "AuditedTarget",
    "ExternalIdentity",
    "MailFailed",
    "OrganizationMembership",
    "OwnedRows",
    "ReadableRows",
    "ResetPasswordRequest",
    "ResetPasswordResult",
    "SharedThing",
    "SignInMethod",
    "StoredReader",
    "active_principals",
    "compare_reads",
    "end_external_sessions",
    "find_by_username",
    "hand_over_owned",
    "select_members",
    "select_sign_in_groups",
    "select_team_members",
    "sign_in_external",
    "verified_addresses",
]
