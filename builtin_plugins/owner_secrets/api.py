"""Secrets of owners as other plugins keep and read them."""

from __future__ import annotations

from builtin_plugins.owner_secrets.store import (
    OWNER_SECRETS,
    OwnerSecrets,
    SecretEntry,
    SecretOwner,
    SecretUnreadable,
    secrets_of,
)

__all__ = [
    "OWNER_SECRETS",
    "OwnerSecrets",
    "SecretEntry",
    "SecretOwner",
    "SecretUnreadable",
    "secrets_of",
]
