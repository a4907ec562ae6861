"""A process that tells what it was given: run as ``python -m tests.fakes.told_process [HOW [WITH]]``."""

from __future__ import annotations

import gc
import json
import locale
import os
import resource
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD, signal.SIGUSR1)


def told() -> dict[str, Any]:
    """Everything that may make a difference, save numbers of processes."""
    streams = (sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__)
    return {
        "arguments": [sys.argv, sys.orig_argv],
        "module": [__name__, str(__spec__ and __spec__.name), sys.modules["__main__"].__dict__ is globals()],
        "modules": [sys.path, sys.executable, sys.prefix, sys.exec_prefix, sys.base_prefix],
        "environment": dict(os.environ),
        "folder": str(Path.cwd()),
        "streams": [
            [s.name, s.fileno(), s.mode, s.encoding, s.errors, s.line_buffering, s.write_through, s.isatty()]
            for s in streams
        ],
        "descriptors": sorted(os.listdir("/proc/self/fd")),  # noqa: PTH208
        "signals": [str(signal.getsignal(number)) for number in SIGNALS],
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "limits": [resource.getrlimit(limit) for limit in range(16)],
        "priority": os.nice(0),
        "mask": os.umask(0o22),
        "leader": [os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid()],
        "threads": len(os.listdir("/proc/self/task")),  # noqa: PTH208
        "time zone": [time.tzname, time.timezone],
        "locale": locale.setlocale(locale.LC_ALL),
        "warnings": [str(entry[:3]) for entry in warnings.filters if entry[2].__module__ == "builtins"],
        "collector": [gc.isenabled(), gc.get_threshold(), gc.get_debug()],
        "recursion": sys.getrecursionlimit(),
        "turn": sys.getswitchinterval(),
    }


def main(how: str = "tell", what: str = "") -> None:
    """Tell, or end in some way."""
    if how == "exit":
        sys.exit(int(what) if what.isdigit() else what)
    elif how == "raise":
        raise RuntimeError(what)
    elif how == "signal":
        os.kill(os.getpid(), int(what))
    elif how == "wait":
        sys.stdout.write("waits\n")
        sys.stdout.flush()
        signal.pause()
    else:
        sys.stdout.write(json.dumps(told()))


if __name__ == "__main__":
    main(*sys.argv[1:])
