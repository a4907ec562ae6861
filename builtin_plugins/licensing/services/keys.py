"""License keys: made at random, kept as a keyed hash, shown by their end."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence

from kernel.sdk import Platform

from ..settings import LicensingSettings

_CONTEXT = b"platform license key\0"
_FORM = re.compile(r"[0-9A-F]{16}")
_STORED = "license-secret"


def make_key() -> str:
    """A new key: four groups of four hexadecimal digits, 64 bits at random."""
    digits = secrets.token_hex(8).upper()
    return "-".join(digits[at : at + 4] for at in range(0, 16, 4))


def masked(end: str) -> str:
    """A key of which only the end is known."""
    return f"****-****-****-{end}"


def end_of(key: str) -> str:
    """What is kept of a key to distinguish it from others."""
    return _plain(key)[-4:]


class KeyHasher:
    """Hashes keys with the instance's secrets: the current one, and former ones that are still valid."""

    def __init__(self, present: str, former: Sequence[str] = ()) -> None:
        self._secrets = [secret.encode() for secret in (present, *former)]

    def hash(self, key: str) -> str:
        """The hash to store."""
        return _hash(self._secrets[0], key)

    def candidates(self, key: str) -> list[str]:
        """The hashes under which the key may be stored. Takes equally long for an invalid key."""
        return [_hash(secret, key) for secret in self._secrets]

    def matches(self, key: str, stored_hash: str | None) -> bool:
        """Whether a stored hash is that of the key, in constant time."""
        matches = [hmac.compare_digest(candidate, stored_hash or "") for candidate in self.candidates(key)]
        return any(matches)


def hasher_of(platform: Platform) -> KeyHasher:
    """The hasher of this platform: LICENSE_SECRET, else JWT_SECRET, else a secret kept in the home."""
    own = platform.settings_of(LicensingSettings).license_secret
    shared, former = platform.settings.jwt_secret, platform.settings.jwt_previous_secret
    if own is not None:
        return KeyHasher(own.get_secret_value())
    if shared is not None:
        old = [] if former is None else [former.get_secret_value()]
        return KeyHasher(shared.get_secret_value(), old)
    return KeyHasher(platform.secrets.ensure(_STORED))


def _plain(key: str) -> str:
    """Normalize what people type: no dashes or spaces, upper case."""
    return re.sub(r"[\s-]", "", key).upper()


def _hash(secret: bytes, key: str) -> str:
    plain = _plain(key)
    # Text that isn't in the form of a key is hashed, too, and then not found.
    marked = plain if _FORM.fullmatch(plain) else f"no key: {plain}"
    return hmac.new(secret, _CONTEXT + marked.encode(), hashlib.sha256).hexdigest()
