"""Passwords: argon2id (RFC 9106), off the event loop, with bounded concurrency and queue."""

from __future__ import annotations

import asyncio
import os
import random
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from kernel.sdk import ResourceKey, Unavailable

T = TypeVar("T")

WAITING = 32
PATIENCE = 10.0
_NICENESS = 19
_RETRY_AFTER = (2, 8)
_PASSES = 3  # RFC 9106, section 4, second recommended option, with 64 MiB
_NOBODY = (
    "$argon2id$v=19$m={kib},t={passes},p=1$c29tZS1maXhlZC1zYWx0IQ$MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI"
)


class TooManySignIns(Unavailable):
    code = "too_many_sign_ins"
    default_detail = "Too many sign-ins at the moment; try again in a few seconds"


class Passwords:
    """Hashes and verifies on at most half of the cores, at a lower priority than requests.

    Memory is bounded by threads x `memory_mb` MiB. At most `WAITING` further anonymous callers wait for a
    thread (about two seconds' worth of work on an idle machine), none longer than `PATIENCE` seconds; beyond
    that, TooManySignIns is raised at once. A waiting client that leaves frees its place.
    """

    def __init__(self, memory_mb: int = 64) -> None:
        # One lane: with argon2-cffi's default of four, a single hash would occupy every core for the same
        # work.
        self.use(PasswordHasher(time_cost=_PASSES, memory_cost=memory_mb * 1024, parallelism=1))
        threads = max(1, (os.cpu_count() or 2) // 2)
        self._threads = ThreadPoolExecutor(threads, "platform-password", initializer=_step_back)
        self._free = asyncio.Semaphore(threads)
        self._waiting = 0

    def use(self, hasher: PasswordHasher) -> None:
        """Use this hasher from now on. Earlier hashes still verify: each names its own parameters."""
        self._hasher = hasher
        self._nobody = _NOBODY.format(kib=hasher.memory_cost, passes=hasher.time_cost)

    def refuse_when_full(self) -> None:
        """Raise TooManySignIns if there is no room for another anonymous caller to wait. Call it first."""
        if self._waiting >= WAITING:
            raise _turned_away()

    async def hash(self, password: str, *, anonymous: bool = False) -> str:
        """The argon2id hash of `password`. Raises TooManySignIns, only with `anonymous`."""
        return await self._run(lambda: self._hasher.hash(password), anonymous)

    async def verify(self, stored: str | None, password: str, *, anonymous: bool = False) -> bool:
        """Whether `password` fits. An unknown account (None) costs the same time as a wrong password.

        Raises TooManySignIns, only with `anonymous`: signed-in callers are never turned away.
        """
        right = await self._run(lambda: self._verify(stored or self._nobody, password), anonymous)
        return right and stored is not None

    def _verify(self, stored: str, password: str) -> bool:
        try:
            return self._hasher.verify(stored, password)
        except (VerificationError, InvalidHashError):
            return False

    async def _run(self, work: Callable[[], T], anonymous: bool) -> T:
        await self._take_turn(anonymous)
        job = asyncio.get_running_loop().run_in_executor(self._threads, work)
        # A thread can't be stopped: its place is free when it is done, even if nobody waits for it any more.
        job.add_done_callback(lambda _: self._free.release())
        return await asyncio.shield(job)

    async def _take_turn(self, anonymous: bool) -> None:
        if not anonymous:
            await self._free.acquire()
            return
        self.refuse_when_full()
        self._waiting += 1
        try:
            async with asyncio.timeout(PATIENCE):
                await self._free.acquire()
        except TimeoutError:
            raise _turned_away() from None
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Release the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)


PASSWORDS: ResourceKey[Passwords] = ResourceKey("passwords")


def _turned_away() -> TooManySignIns:
    # At random: clients refused together would otherwise all come back together.
    return TooManySignIns(headers={"Retry-After": str(random.randint(*_RETRY_AFTER))})


def _step_back() -> None:
    """Lower this thread's priority; on Linux, niceness is per thread, and hashing threads inherit it."""
    if sys.platform == "linux":
        with suppress(OSError):  # a container may forbid it: hashing continues at normal priority
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
