"""Passwords: argon2id (RFC 9106), off the event loop and bounded in number."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

_NOBODY = "$argon2id$v=19$m=65536,t=3,p=4$c29tZS1maXhlZC1zYWx0$MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI"


class Passwords:
    """Hashes and verifies. Half the cores at most, so that a login flood can't starve the rest."""

    def __init__(self) -> None:
        self._hasher = PasswordHasher()
        self._threads = ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2), "platform-password")

    async def hash(self, password: str) -> str:
        """The argon2id hash of `password`."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._hasher.hash, password)

    async def verify(self, stored: str | None, password: str) -> bool:
        """Whether `password` fits. An unknown account (None) costs the same time as a wrong password."""
        right = await asyncio.get_running_loop().run_in_executor(
            self._threads, self._verify, stored or _NOBODY, password
        )
        return right and stored is not None

    def _verify(self, stored: str, password: str) -> bool:
        try:
            return self._hasher.verify(stored, password)
        except (VerificationError, InvalidHashError):
            return False

    def close(self) -> None:
        """Let go of the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)
