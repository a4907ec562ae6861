"""How a process keeps freed memory, and when Python looks for garbage; each with what it brings.

- Two arenas instead of eight per core: glibc keeps what was freed in each, and Python allocates under its
  global lock.
- Blocks of 4 MB and more come from the system and return to it. With glibc's first threshold of 128 KB, a
  search causes 240 page faults; with this, two.
- Seldom a collection while a process starts: scanning modules, models and tables, which stay, took a tenth of
  the start's processor time, and one scan at its end another tenth.
- None at the exit of a command: it took a fifth of its total.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import os

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # from malloc.h
_GLIBC_VARIABLES = ("MALLOC_", "GLIBC_TUNABLES")
_ARENAS = 2
# glibc begins with 128 KB and raises that as blocks are freed, up to 32 MB; a value that is set stays.
_LARGE = 4 * 1024 * 1024
_WHILE_STARTING = 1_000_000  # more objects than a start makes, but a limit for a long migration
_AFTERWARDS = (20_000, 20, 20)


def limit_arenas() -> None:
    """Set glibc's options; call this before there are threads. Has no effect with other C libraries.

    A glibc variable in the environment (`MALLOC_ARENA_MAX` …) takes precedence.
    """
    if any(name.startswith(_GLIBC_VARIABLES) for name in os.environ):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # musl, macOS, Windows
        return
    for option, value in ((_ARENA_MAX, _ARENAS), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _LARGE)):
        mallopt(option, value)


def collect_seldom() -> None:
    """Collect seldom until `freeze_present`; call this before heavy imports."""
    gc.set_threshold(_WHILE_STARTING, 50, 50)


def freeze_present() -> None:
    """The start is over: never scan the present objects again."""
    gc.freeze()
    gc.set_threshold(*_AFTERWARDS)


def skip_collection_at_exit() -> None:
    """The system reclaims all memory anyway. Close and flush everything first."""
    atexit.register(gc.freeze)
