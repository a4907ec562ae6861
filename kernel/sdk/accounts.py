"""Accounts and what is stored about them, for plugins that administer, sign in or hand over."""

from kernel.auth.acting import Acting
from kernel.auth.audit import Origin
from kernel.auth.callers import operator_of
from kernel.auth.models import (
    AccountRemoval,
    AuditEntry,
    LinkApproval,
    Milestone,
    OwnerSecret,
    PasswordReset,
    SetupAttempt,
    SetupCode,
)
from kernel.auth.ownership import visible
from kernel.auth.permissions import Decision
from kernel.auth.principals import TokenScope
from kernel.auth.states import TOPIC as ACCOUNT_TOPIC
from kernel.auth.states import AccountState, AccountStates, revoke_sessions
from kernel.auth.tokens import TOKENS, Tokens, account_id

__all__ = [
    "ACCOUNT_TOPIC",
    "TOKENS",
    "AccountRemoval",
    "AccountState",
    "AccountStates",
    "Acting",
    "AuditEntry",
    "Decision",
    "LinkApproval",
    "Milestone",
    "Origin",
    "OwnerSecret",
    "PasswordReset",
    "SetupAttempt",
    "SetupCode",
    "TokenScope",
    "Tokens",
    "account_id",
    "operator_of",
    "revoke_sessions",
    "visible",
]
