"""Tasks for child processes: good ones, and each way to go wrong."""

from __future__ import annotations

import errno
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Refused(Exception):
    """An error with a code."""

    code = "encrypted"


def echo(value: Any) -> Any:
    """Answer what was given."""
    return value


def imported(module: str) -> bool:
    """Whether somebody has imported a module before."""
    return module in sys.modules


def pid() -> int:
    """Tell the process."""
    return os.getpid()


def parent() -> int:
    """Tell the prepared process."""
    return os.getppid()


def hold(megabytes: int) -> int:
    """Take memory."""
    return len(bytearray(megabytes << 20)) >> 20


def spin() -> None:
    """Use all processor time."""
    while True:
        pass


def spin_on() -> None:
    """Use all processor time, and ignore the warning."""
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    spin()


def hang() -> None:
    """Never return."""
    threading.Event().wait()


def long_answer(_path: str) -> str:
    """Answer at length."""
    return "x" * 1_000_000


def flood(_path: str) -> None:
    """Write to the standard error for ever."""
    while True:
        os.write(2, b"x" * 65_536)


def large_file(path: str) -> None:
    """Write a file beyond its limit."""
    Path(path).write_bytes(b"x" * 1_000_000)


def refuse() -> None:
    """Raise an error with a code."""
    raise Refused("for the log")


def crash() -> None:
    """Die as a C library does."""
    os.abort()


def leave() -> None:
    """End without an answer."""
    os._exit(0)


def killed() -> None:
    """Die as under the kernel's out-of-memory killer."""
    os.kill(os.getpid(), signal.SIGKILL)


def no_space() -> None:
    """Find the disk full, inside a library that wraps the error."""
    try:
        raise OSError(errno.ENOSPC, "no space left on device")
    except OSError as error:
        raise ValueError("the archive is damaged") from error


def no_handles() -> None:
    """Find no file handle."""
    raise OSError(errno.ENFILE, "too many open files in system")


def surroundings() -> dict[str, Any]:
    """Tell what can be seen from here."""
    opened = []
    for number in range(1024):
        try:
            os.fstat(number)
        except OSError:
            continue
        opened.append(number)
    return {
        "environment": sorted(os.environ),
        "descriptors": opened,
        "core": resource.getrlimit(resource.RLIMIT_CORE)[0],
        "pid": os.getpid(),
        "group": os.getpgrp(),
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
    }


def _descendants() -> list[int]:
    """Start a child in this group, and one that left it as a daemon does."""
    child = subprocess.Popen(["sleep", "600"])
    daemon = (
        "import subprocess\n"
        "print(subprocess.Popen(['sleep', '600'], start_new_session=True, stdout=subprocess.DEVNULL).pid)\n"
    )
    told = subprocess.run([sys.executable, "-c", daemon], check=True, stdout=subprocess.PIPE, text=True)
    return [child.pid, int(told.stdout)]


def family(path: str) -> None:
    """Start descendants, tell all process ids through a named pipe, then hang."""
    pids = [os.getpid(), *_descendants()]
    Path(path).write_text(" ".join(map(str, pids)), encoding="ascii")
    hang()


def left_behind() -> list[int]:
    """Start descendants and leave them."""
    return _descendants()


def attempts(readable: str, writable: str, secret: str, platform: int) -> dict[str, bool]:
    """What this process can do: with the files that it was given, and with others."""
    return {
        "read": _works(lambda: Path(readable).read_text()),
        "write": _works(lambda: Path(writable).write_text("text")),
        "program": subprocess.run(["true"], check=False).returncode == 0,
        "read another file": _works(lambda: Path(secret).read_text()),
        "read by a program": subprocess.run(["cat", secret], capture_output=True, check=False).returncode
        == 0,
        "write another file": _works(lambda: Path(secret).write_text("")),
        "make a file": _works(lambda: Path(secret).with_name("new").touch()),
        "remove a file": _works(lambda: Path(writable).unlink()),
        "see an environment": _works(lambda: Path(f"/proc/{platform}/environ").read_bytes()),
        "signal the platform": _works(lambda: os.kill(platform, 0)),
        "open a socket": _works(lambda: socket.socket().close()),
        "open a local socket": _works(lambda: socket.socket(socket.AF_UNIX).close()),
    }


def _works(action: Callable[[], object]) -> bool:
    try:
        action()
    except OSError:
        return False
    return True
