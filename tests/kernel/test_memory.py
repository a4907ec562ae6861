"""The C library's allocator, in a process that wants to save memory."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

THREADS = """
import ctypes, sys, threading
from kernel.libs.memory import limit_arenas
if sys.argv[1] == "saving":
    limit_arenas()
library = ctypes.CDLL(None)
library.malloc.argtypes, library.fdopen.restype = [ctypes.c_size_t], ctypes.c_void_p
library.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
together = threading.Barrier(6)
def work():
    together.wait()
    library.malloc(1000)
    together.wait()
threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
file = library.fdopen(1, b"w")
library.malloc_info(0, file)
library.fflush(ctypes.c_void_p(file))
"""


def arenas(how: str) -> int:
    """How many arenas a process with six busy threads has."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", THREADS, how]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    return run.stdout.count("<heap nr=")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_threads_share_two_arenas() -> None:
    """Each arena keeps memory that was freed in it; without the option each thread has one."""
    assert arenas("saving") <= 2 < arenas("default")
