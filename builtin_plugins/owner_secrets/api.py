"""Secrets of owners as other plugins keep and read them; the hook that describes plugins' own keys."""

from __future__ import annotations

from collections.abc import Mapping

from builtin_plugins.owner_secrets.store import (
    OWNER_SECRETS,
    OwnerSecrets,
    SecretEntry,
    SecretOwner,
    SecretUnreadable,
    secrets_of,
)
from kernel.sdk import hookspec

__all__ = [
    "OWNER_SECRETS",
    "OwnerSecrets",
    "SecretEntry",
    "SecretOwner",
    "SecretUnreadable",
    "describe_secrets",
    "secrets_of",
]


@hookspec.declaration
def describe_secrets() -> Mapping[str, str]:
    """The secrets that the plugin makes in `PLATFORM_HOME/secrets`: by name, what happens if one is removed.

    ``platformctl secret`` marks them, and asks before it removes one. The text is a sentence's second half:
    ``{"acme-key": "all links sent so far will stop working"}``.
    """
