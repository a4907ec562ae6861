"""How soon a thread that wakes up gets the processor.

When all cores are busy, Linux lets a running thread keep its core for a few milliseconds. A thread that asks
for short time slices is scheduled sooner after waking up, without more processor time in total: the event
loop doesn't wait for threads that compute for long (sched_setattr(2); the kernel's
Documentation/scheduler/sched-eevdf.rst).
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from contextlib import suppress

_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}  # system call numbers: the C library has no function
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")  # size, policy, flags, nice, priority, runtime, deadline, period
_RESET_ON_FORK = 1  # its child threads and processes get normal time slices
_SLICE = 100_000  # ns, the shortest that Linux accepts


def use_short_slices() -> None:
    """Ask for short time slices for the calling thread only.

    Has no effect before Linux 6.12 or on other systems, nor in a process with raised priority (a negative
    `nice`), whose new threads would lose that priority.
    """
    number = _SCHED_SETATTR.get(platform.machine())
    if sys.platform != "linux" or number is None:
        return
    with suppress(AttributeError, OSError, TypeError):
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        if nice >= 0 and os.sched_getscheduler(0) == os.SCHED_OTHER:
            wanted = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, _RESET_ON_FORK, nice, 0, _SLICE, 0, 0)
            ctypes.CDLL(None).syscall(number, 0, wanted, 0)
