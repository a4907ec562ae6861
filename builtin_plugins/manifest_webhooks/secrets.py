"""The secrets that a manifest's senders may sign with."""

from __future__ import annotations

from kernel.sdk import Platform

from .manifest import Manifest

NEXT = ".next"
"""The suffix of a secret's successor; senders may use either meanwhile."""


def secrets_of(platform: Platform, manifest: Manifest) -> list[bytes]:
    """The secret that the manifest names, then its successor, if there is one.

    Empty if none is named or the named one isn't set. Reads files: call it in a thread.
    """
    reference = manifest.webhook.secret_ref
    current = None if reference is None else _value(platform, reference)
    if reference is None or current is None:
        return []
    following = _value(platform, reference + NEXT)
    return [current] if following is None else [current, following]


def _value(platform: Platform, name: str) -> bytes | None:
    try:
        value = platform.secrets.get(name)
    except ValueError:
        return None
    # Editors and `echo` add a line feed, which senders don't have in their copy.
    return (value or "").rstrip("\r\n").encode() or None


def missing_secret(platform: Platform, manifest: Manifest) -> str | None:
    """The name of a secret that is declared but not set. Reads a file: call it in a thread."""
    reference = manifest.webhook.secret_ref
    return reference if reference is not None and not secrets_of(platform, manifest) else None


def how_to_set(reference: str) -> str:
    """The remedy for a missing secret."""
    return f"the secret '{reference}' is not set; set it with: platformctl secret set {reference}"
