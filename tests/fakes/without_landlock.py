"""A kernel without Landlock: what one thread sees of it, and what that thread starts."""

from __future__ import annotations

import asyncio
import ctypes
import struct
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

_NO_NEW_PRIVS, _SECCOMP, _FILTER = 38, 22, 2
_CREATE_RULESET, _ENOSYS = 444, 38


def run_without_landlock(run: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run `run()` in a thread of its own, for which the kernel knows no Landlock; raises what it raises."""

    def begin() -> None:
        _refuse_landlock()
        asyncio.run(run())

    with ThreadPoolExecutor(1) as threads:
        threads.submit(begin).result()


def _refuse_landlock() -> None:
    """A filter of this thread's calls: the one that makes rule sets does not exist."""
    program = [
        (0x20, 0, 0, 0),  # load the call's number
        (0x15, 0, 1, _CREATE_RULESET),  # another one: skip the refusal
        (0x06, 0, 0, 0x00050000 | _ENOSYS),
        (0x06, 0, 0, 0x7FFF0000),  # allow
    ]
    instructions = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    head = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(instructions)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    assert libc.prctl(_SECCOMP, _FILTER, ctypes.c_void_p(ctypes.addressof(head)), 0, 0) == 0
