"""What `platformctl doctor` says about stored secrets."""

from __future__ import annotations

from collections.abc import AsyncIterator

from builtin_plugins.owner_secrets.store import secrets_of
from kernel.sdk import Diagnostic, Finding, Platform


async def check_encryption(platform: Platform) -> AsyncIterator[Finding]:
    """Check that every stored secret can be decrypted."""
    bad = await platform.database.read(secrets_of(platform).unreadable)
    if bad:
        listed = ", ".join(bad[:3]) + (" …" if len(bad) > 3 else "")
        yield Finding(
            "encryption",
            "failed",
            f"{len(bad)} stored secrets can't be decrypted: {listed}",
            "Put the key file 'owner-secrets' back into PLATFORM_HOME/secrets, or set these secrets again.",
        )
    else:
        yield Finding("encryption", "ok", "all stored secrets can be decrypted")


DIAGNOSTICS = (Diagnostic("rows", check_encryption),)
