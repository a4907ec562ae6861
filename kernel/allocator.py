"""How the C library keeps memory that the process has freed.

glibc has up to eight arenas per core, and each keeps the memory freed in it. Python allocates under its
global lock, so a few arenas are enough. Large blocks that are needed only briefly, such as a batch of vectors
or a file, come from the system and return to it.
"""

from __future__ import annotations

import ctypes
import os

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # from malloc.h
_SAID = ("MALLOC_", "GLIBC_TUNABLES")
_ARENAS = 2
# Larger blocks come from the system and return to it. glibc begins with 128 KB and raises that as blocks are
# freed, up to 32 MB; a value that is set stays. With 128 KB, a search causes 240 page faults; with 4 MB, two.
_LARGE = 4 * 1024 * 1024


def save_memory() -> None:
    """Set the options; call this before there are threads. Has no effect with other C libraries.

    A glibc variable in the environment (`MALLOC_ARENA_MAX` …) takes precedence.
    """
    if any(name.startswith(_SAID) for name in os.environ):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # musl, macOS, Windows
        return
    for option, value in ((_ARENA_MAX, _ARENAS), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _LARGE)):
        mallopt(option, value)
