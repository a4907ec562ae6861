"""Usernames and e-mail addresses for external identities: within our pattern, and unique."""

from __future__ import annotations

import hashlib
import re
import secrets
import unicodedata
from collections.abc import Sequence
from urllib.parse import urlsplit

from sqlalchemy import select
from sqlalchemy.orm import InstrumentedAttribute, Session

from builtin_plugins.accounts.external_schemas import ExternalIdentity
from kernel.sdk import Account

_OUTSIDE = re.compile(r"[^A-Za-z0-9_.-]+", re.ASCII)
_LONGEST_NAME = 50
_LONGEST_EMAIL = 254
_SUFFIX = 8  # characters after the dash (spec 3.5)


def local_name(identity: ExternalIdentity) -> str:
    """The provider's name, or the subject, reduced to the characters of a username here."""
    return _fitting(identity.username or "") or _fitting(identity.subject) or "user"


def fallback_email(identity: ExternalIdentity) -> str:
    """`<subject>@<host of the issuer>` (wire-facts 3.3)."""
    host = urlsplit(identity.issuer).hostname or "sso.invalid"
    subject = _fitting(identity.subject)
    return f"{subject if subject == identity.subject else _mark(identity)}@{host}"[:_LONGEST_EMAIL]


def free_username(session: Session, identity: ExternalIdentity, account: Account | None = None) -> str:
    """The identity's name, with a dash and 8 characters appended if another account has it.

    `account` is the one to name; its suffix never changes.
    """
    name = local_name(identity)
    current_name = account.username if account is not None and _is_suffixed(account.username, name) else None
    candidates = [text for text in (name, current_name, f"{name}-{_mark(identity)}") if text]
    return _first_free(session, Account.username_key, candidates, account) or f"{name}-{_random()}"


def free_email(session: Session, identity: ExternalIdentity, account: Account | None = None) -> str:
    """The provider's address if it is free, otherwise a made-up unique one. Never links accounts."""
    address = identity.email if identity.email and len(identity.email) <= _LONGEST_EMAIL else None
    fallback = fallback_email(identity)
    current_address = account.email if account is not None and account.email.endswith(fallback) else None
    candidates = [
        text for text in (address, current_address, fallback, f"{_mark(identity)}-{fallback}") if text
    ]
    free = _first_free(session, Account.email_key, candidates, account)
    return free or f"{_random()}-{fallback}"


def _first_free(
    session: Session,
    column: InstrumentedAttribute[str],
    candidates: Sequence[str],
    account: Account | None,
) -> str | None:
    for text in candidates:
        holder = session.scalar(select(Account.id).where(column == text.casefold()))
        if holder is None or (account is not None and holder == account.id):
            return text
    return None


def _is_suffixed(username: str, name: str) -> bool:
    return username.startswith(f"{name}-") and len(username) == len(name) + 1 + _SUFFIX


def _fitting(text: str) -> str:
    """`text` reduced to the pattern of usernames; empty if nothing is left."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return _OUTSIDE.sub("-", plain)[:_LONGEST_NAME].strip("-")


def _mark(identity: ExternalIdentity) -> str:
    """Eight characters derived from the identity, always the same."""
    text = f"{identity.issuer}\n{identity.subject}"
    return hashlib.sha256(text.encode()).hexdigest()[:_SUFFIX]


def _random() -> str:
    return secrets.token_hex(_SUFFIX // 2)
