"""The keys that encrypt stored secrets: the newest seals, older ones still open."""

from __future__ import annotations

import hashlib
import secrets
from typing import Final, NamedTuple

from kernel.sdk import PlatformError, SecretStore

NAME: Final = "owner-secrets"
_PURPOSE: Final = b"owner secrets v1"
_ID_CHARS: Final = 12
_NONCE_BYTES: Final = 12


class SealBroken(Exception):
    """A sealed value can't be opened: the value, its place or its key has changed."""


class KeyFromEnvironment(PlatformError):
    """The keys come from the environment, which only the operator can change."""

    code = "key_from_environment"
    default_detail = (
        "The key is set by PLATFORM_SECRET_OWNER_SECRETS. Put a new one (openssl rand -hex 48) in front of "
        "it, on a line of its own, restart all processes, and run this again; then remove the old one"
    )


class Key(NamedTuple):
    """A key and the name by which rows refer to it, which reveals nothing about it."""

    id: str
    value: bytes

    def seal(self, text: str, place: bytes) -> tuple[bytes, bytes]:
        """A nonce and the sealed text (AES-256-GCM), which opens only at the same `place`."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce, AESGCM(self.value).encrypt(nonce, text.encode(), place)

    def open(self, nonce: bytes, sealed: bytes, place: bytes) -> str:
        """The text. Raises SealBroken."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            return AESGCM(self.value).decrypt(nonce, sealed, place).decode()
        except (InvalidTag, ValueError):
            raise SealBroken from None


class KeyRing:
    """The keys in the home's secret `owner-secrets`, one per line, newest first.

    Read from the file each time, so that a change by one process applies to all. Several machines on one
    database need the same file, or the variable PLATFORM_SECRET_OWNER_SECRETS.
    """

    def __init__(self, store: SecretStore) -> None:
        self._store = store

    def newest(self) -> Key:
        """The key that seals; created on first use."""
        return _key(self._store.ensure(NAME).split("\n", 1)[0])

    def find(self, key_id: str) -> Key | None:
        """The key with this name, or None."""
        return next((key for key in map(_key, self._lines()) if key.id == key_id), None)

    def add(self) -> Key:
        """Create a key that seals from now on; with keys from the environment, use the first of several.

        Raises KeyFromEnvironment if it has only one.
        """
        if self._store.from_environment(NAME) is not None:
            if len(self._lines()) < 2:
                raise KeyFromEnvironment
            return self.newest()
        line = secrets.token_urlsafe(48)
        self._store.set(NAME, "\n".join([line, *self._lines()]))
        return _key(line)

    def forget(self, used: set[str]) -> None:
        """Drop unused keys, except the newest and the one before it.

        A process that read the file just before a key was added may still seal with the previous one.
        """
        lines = self._lines()
        remaining = [line for place, line in enumerate(lines) if place < 2 or _key(line).id in used]
        if remaining != lines and self._store.from_environment(NAME) is None:
            self._store.set(NAME, "\n".join(remaining))

    def _lines(self) -> list[str]:
        return [line for line in (self._store.get(NAME) or "").split("\n") if line]


def _key(line: str) -> Key:
    # The line is random enough (384 bits) for a plain hash to make a key of it.
    value = hashlib.blake2b(line.encode(), digest_size=32, person=_PURPOSE).digest()
    return Key(hashlib.sha256(value).hexdigest()[:_ID_CHARS], value)
