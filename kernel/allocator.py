"""How the C library keeps the memory that the process has given back.

glibc has eight arenas for each core, and each keeps what was freed in it. Python holds its lock while it
allocates, so that a process of ours needs few of them; and what takes up much memory for a moment, such as a
batch of vectors or a file, comes from the system and goes back to it.
"""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # of malloc.h
_ARENAS = 2
_LARGE = 128 * 1024  # glibc's own, which it raises up to 32 MB by what was freed


def save_memory() -> None:
    """Call it before there are threads. Other C libraries have no such options, and nothing changes."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # musl, macOS, Windows
        return
    for option, value in ((_ARENA_MAX, _ARENAS), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _LARGE)):
        mallopt(option, value)
