"""The secret that a manifest names."""

from __future__ import annotations

from kernel.sdk import Platform

from .manifest import Manifest


def secret_of(platform: Platform, manifest: Manifest) -> bytes | None:
    """The secret's bytes; None where none is named or set. Reads a file: call it in a thread."""
    reference = manifest.webhook.secret_ref
    if reference is None:
        return None
    try:
        value = platform.secrets.get(reference)
    except ValueError:
        return None
    # An editor or `echo` leaves a line feed behind, which no sender has in its copy.
    return (value or "").rstrip("\r\n").encode() or None


def missing_secret(platform: Platform, manifest: Manifest) -> str | None:
    """The name of a secret that is declared but not set. Reads a file: call it in a thread."""
    reference = manifest.webhook.secret_ref
    return reference if reference is not None and secret_of(platform, manifest) is None else None


def how_to_set(reference: str) -> str:
    """What to tell whoever meets a missing secret."""
    return f"the secret '{reference}' is not set; set it with: platformctl secret set {reference}"
