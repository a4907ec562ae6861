"""How soon a thread that wakes up gets the processor.

Where all cores are busy, Linux lets whoever has one keep it for a few milliseconds. A thread that asks for
short turns gets its turn sooner, and no more of them: an event loop that is woken runs before threads that
compute for long (sched_setattr(2); the kernel's Documentation/scheduler/sched-eevdf.rst).
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from contextlib import suppress

_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}  # system calls, which the C library has no function for
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")  # size, policy, flags, nice, priority, runtime, deadline, period
_RESET_ON_FORK = 1  # threads and processes that it starts take turns as usual
_TURN = 100_000  # ns, the shortest that there is


def take_short_turns() -> None:
    """Ask for short turns for this thread alone.

    Before Linux 6.12, and on other systems, its turns stay as they are. A process with a raised priority (a
    negative `nice`) stays as it is: its threads would lose it.
    """
    number = _SCHED_SETATTR.get(platform.machine())
    if sys.platform != "linux" or number is None:
        return
    with suppress(AttributeError, OSError, TypeError):
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        if nice >= 0 and os.sched_getscheduler(0) == os.SCHED_OTHER:
            wanted = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, _RESET_ON_FORK, nice, 0, _TURN, 0, 0)
            ctypes.CDLL(None).syscall(number, 0, wanted, 0)
