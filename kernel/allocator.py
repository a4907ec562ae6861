"""How the C library keeps the memory that the process has freed.

glibc has up to eight arenas for each core, and each keeps what was freed in it. Python holds its lock while
it allocates, so a few arenas are enough here. Large blocks that are needed only briefly, such as a batch of
vectors or a file, come from the system and go back to it.
"""

from __future__ import annotations

import ctypes
import os

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # of malloc.h
_SAID = ("MALLOC_", "GLIBC_TUNABLES")
_ARENAS = 2
# What is larger comes from the system, and goes back to it. glibc begins with 128 KB and raises that by what
# is freed, up to 32 MB; a value that is set stays. With 128 KB a search has 240 page faults, with 4 MB two.
_LARGE = 4 * 1024 * 1024


def save_memory() -> None:
    """Call it before there are threads. Other C libraries have no such options, and nothing changes.

    What the environment says with a variable of glibc's (`MALLOC_ARENA_MAX` …) stays as it is.
    """
    if any(name.startswith(_SAID) for name in os.environ):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # musl, macOS, Windows
        return
    for option, value in ((_ARENA_MAX, _ARENAS), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _LARGE)):
        mallopt(option, value)
