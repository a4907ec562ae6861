"""Encrypts an archive's secrets: AES-256-GCM, with a key from a passphrase or a key file."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from builtin_plugins.platform_ops.backup.compression import Damaged, compressed, decompressed
from builtin_plugins.platform_ops.backup.errors import BackupFailed
from builtin_plugins.platform_ops.settings import OpsSettings

_LARGEST = 16 * 1024 * 1024
_SHORTEST_KEY = 32
# OWASP's recommendation for scrypt: 128 MiB of memory.
_COST, _BLOCK, _LANES = 2**17, 8, 1


class Sealed(BaseModel):
    """Sealed data, and what its key is derived from; base64."""

    model_config = ConfigDict(extra="forbid")

    key: Literal["passphrase", "key-file"]
    salt: str = Field(max_length=64)
    nonce: str = Field(max_length=64)
    data: str = Field(max_length=2 * _LARGEST)


@dataclass(frozen=True)
class Sealer:
    """Seals and opens with one passphrase or key."""

    kind: Literal["passphrase", "key-file"]
    secret: bytes

    def seal(self, content: dict[str, Any], about: bytes) -> Sealed:
        """Encrypt; opening requires the same `about`, which is thereby protected from changes."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        salt, nonce = secrets.token_bytes(16), secrets.token_bytes(12)
        plain = compressed(json.dumps(content).encode())
        data = AESGCM(self._key(salt)).encrypt(nonce, plain, about)
        return Sealed(key=self.kind, salt=_text(salt), nonce=_text(nonce), data=_text(data))

    def open(self, sealed: Sealed, about: bytes) -> dict[str, Any]:
        """Decrypt. Raises BackupFailed for a wrong passphrase, or if anything was changed."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if sealed.key != self.kind:
            raise BackupFailed(f"the backup's secrets need its {sealed.key.replace('-', ' ')}")
        try:
            salt, nonce, data = (
                base64.b64decode(part, validate=True) for part in (sealed.salt, sealed.nonce, sealed.data)
            )
            plain = AESGCM(self._key(salt)).decrypt(nonce, data, about)
            content = json.loads(decompressed(plain, _LARGEST))
        except (InvalidTag, ValueError, Damaged):
            what = self.kind.replace("-", " ")
            raise BackupFailed(f"the {what} does not fit this backup, or the backup was changed") from None
        assert isinstance(content, dict)
        return content

    def _key(self, salt: bytes) -> bytes:
        if self.kind == "key-file":
            return hashlib.blake2b(
                self.secret, salt=salt[:16], digest_size=32, person=b"platform backup"
            ).digest()
        memory = 2 * 128 * _COST * _BLOCK
        return hashlib.scrypt(self.secret, salt=salt, n=_COST, r=_BLOCK, p=_LANES, maxmem=memory, dklen=32)


def sealer_of(settings: OpsSettings) -> Sealer | None:
    """The sealer for the configured passphrase or key file; None without one. Raises BackupFailed."""
    if settings.backup_key_file is not None:
        return Sealer("key-file", _key_in(settings.backup_key_file))
    if settings.backup_passphrase is not None:
        return Sealer("passphrase", settings.backup_passphrase.get_secret_value().encode())
    return None


def _key_in(path: Path) -> bytes:
    try:
        with path.expanduser().open("rb") as handle:
            key = handle.read(64 * 1024)
    except OSError as error:
        raise BackupFailed(f"PLATFORM_BACKUP_KEY_FILE can't be read: {error.strerror}") from None
    if len(key) < _SHORTEST_KEY:
        raise BackupFailed(
            f"PLATFORM_BACKUP_KEY_FILE has less than {_SHORTEST_KEY} bytes;"
            " make one with: openssl rand -out FILE 64"
        )
    return key


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
