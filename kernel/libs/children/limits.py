"""The limits of a child process, and how it applies them to itself."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
from pathlib import Path
from typing import Final, NamedTuple

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_MB: Final = 1024 * 1024
# Above the soft limit, whose signal the parent recognizes: the hard limit kills without a reason.
_CPU_GRACE_SECONDS: Final = 2
_OPEN_FILES: Final = 256
_NICE: Final = 5


class ChildLimits(NamedTuple):
    """Limits of one child process.

    `memory_mb` is address space in addition to that of the prepared process; `cpu_seconds` and `wall_seconds`
    are processor and clock time; `file_bytes` is the size of each file it writes, and `output_bytes` the size
    of its result.
    """

    memory_mb: int
    cpu_seconds: int
    wall_seconds: float
    file_bytes: int = 0
    output_bytes: int = _MB


def bind(limits: ChildLimits) -> None:
    """Limit this process permanently: no core dumps, low priority, first to be killed if memory runs out."""
    _set(resource.RLIMIT_CORE, 0)
    _set(resource.RLIMIT_NOFILE, _OPEN_FILES)
    _set(resource.RLIMIT_FSIZE, limits.file_bytes)
    _set(resource.RLIMIT_AS, _address_space() + limits.memory_mb * _MB)
    _set(resource.RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + _CPU_GRACE_SECONDS)
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def die_with(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Ask Linux for a signal when the parent dies; exit at once if it already has."""
    _prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies (Linux), so that it can be found."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(option, value)


def _address_space() -> int:
    """Bytes that this process has mapped; 0 if the system doesn't tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return 0
    return pages * resource.getpagesize()


def _set(limit: int, soft: int, hard: int | None = None) -> None:
    ceiling = resource.getrlimit(limit)[1]
    target = soft if hard is None else hard
    allowed = target if ceiling == resource.RLIM_INFINITY else min(target, ceiling)
    # macOS refuses an address space limit; there, only the time limits hold.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(limit, (min(soft, allowed), allowed))
