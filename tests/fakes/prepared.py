"""Python processes of tests, forked from one that has imported what they would import first.

Those imports are nearly all of what a command costs: seconds of processor time, for each process. A fork has
the arguments, environment, folder and streams that a new interpreter would be given, and its own process
number: it can be sent signals, and what it starts is really started. What an interpreter does before its
first line is not in it, so whatever could make a difference there is really started as well: see
`_is_ordinary`.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

_PROGRAM = Path(__file__).with_name("prepared_process.py")
_PATIENCE = 120.0
_LONGEST = 1 << 20
_FOLLOWED = "PYTHONPATH"  # the one of Python's variables that a fork can follow
_BEFORE_ALL = frozenset({"sitecustomize", "usercustomize"})
PASSED_ON = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "TMPDIR")
"""The variables of the tester that every process is given."""
_READ_EARLY = (
    *("PYTHON", "LD_", "LC_", "LANG", "MALLOC_", "GLIBC_", "OMP_", "OPENBLAS_", "MKL_", "OPENSSL_", "SSL_"),
    *("TYPER_", "_TYPER_", "TERMINAL_WIDTH", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS"),
)
"""Starts of variables that the interpreter or a library reads when it starts or is imported."""


class Forked:
    """A process that was forked, with the part of `asyncio.subprocess.Process` that tests use."""

    def __init__(self, answer: socket.socket) -> None:
        self._answer = answer
        self._status: int | None = None
        answer.settimeout(_PATIENCE)
        self.pid = int(self._hear()["pid"])

    @property
    def returncode(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        if self._status is None:
            self._answer.settimeout(0)
            with suppress(BlockingIOError):
                self._end(self._hear())
        return self._status

    async def wait(self) -> int:
        """Until it ends; returns its exit status."""
        loop = asyncio.get_running_loop()
        while (status := self.returncode) is None:
            readable = asyncio.Event()
            loop.add_reader(self._answer, readable.set)
            try:
                await readable.wait()
            finally:
                loop.remove_reader(self._answer)
        return status

    def join(self, seconds: float) -> int:
        """The same without an event loop. Raises TimeoutError."""
        if self._status is None:
            self._answer.settimeout(seconds)
            self._end(self._hear())
        return self._status or 0

    def send_signal(self, number: int) -> None:
        """Send it, unless the process has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _hear(self) -> dict[str, Any]:
        said = self._answer.recv(_LONGEST)
        if not said:
            raise RuntimeError("the process that forks for the tests is gone")
        return dict(json.loads(said))

    def _end(self, said: Mapping[str, Any]) -> None:
        self._status = int(said["status"])
        self._answer.close()


class Prepared:
    """The process that imports ahead and forks, and our line to it; it ends when the line is cut."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(_PROGRAM), str(theirs.fileno())],
                env=_own_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._control.settimeout(_PATIENCE)
        told = self._control.recv(_LONGEST)
        if not told:
            raise RuntimeError(f"{_PROGRAM.name} ended with {self._process.wait()}")
        ready = json.loads(told)
        self.path: list[str] = ready["path"]
        self.names = frozenset(ready["names"])

    def fork(self, request: Mapping[str, Any], streams: Sequence[int]) -> Forked:
        """Fork a process with these streams."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            message = json.dumps(request).encode()
            socket.send_fds(self._control, [message], [theirs.fileno(), *streams])
        return Forked(ours)

    def close(self) -> None:
        """End it, and every process that it has forked."""
        self._control.close()
        self._process.wait()


_making = threading.Lock()


@cache
def _prepared() -> Prepared:
    found = Prepared()
    atexit.register(found.close)
    return found


def close() -> None:
    """End the process that forks, so that its processor time is counted with ours."""
    if _prepared.cache_info().currsize:
        _prepared().close()
        atexit.unregister(_prepared().close)
        _prepared.cache_clear()


def fork(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    streams: Sequence[int],
    folder: Path | None = None,
    python: str = sys.executable,
    session: bool = False,
) -> Forked | None:
    """`python COMMAND` as a fork; None where it has to be really started.

    `streams` are standard output, error, and perhaps input.
    """
    safe = list(command[:1]) == ["-P"]
    option, module, *arguments = [*command[safe:], "", ""]
    if option != "-m":
        return None
    with _making:
        prepared = _prepared()
    at = Path(folder or Path.cwd()).absolute()
    named = filter(None, env.get(_FOLLOWED, "").split(os.pathsep))
    added = [*([] if safe else [str(at)]), *(str(at / name) for name in named)]
    path = prepared.path if python == sys.executable else _path_of(python, prepared.path)
    if not _is_ordinary(prepared, env, added, path):
        return None
    request = {
        "command": list(command),
        "module": module,
        "arguments": arguments[:-2],
        "environment": dict(env),
        "folder": str(at),
        "executable": python,
        "prefix": sys.prefix if python == sys.executable else str(Path(python).parent.parent),
        "path": [*added, *path],
        "session": session,
    }
    return prepared.fork(request, streams)


def _is_ordinary(
    prepared: Prepared, env: Mapping[str, str], added: Sequence[str], path: Sequence[str]
) -> bool:
    """Whether a new interpreter would import the very modules that are imported already, in the same way.

    Not so where a variable differs that is read at that time, where the environment does not see all folders
    that ours does, or where another folder has a module of the same name as one of them.
    """
    ours = _own_environment()
    early = {name for name in {*env, *ours} if name.startswith(_READ_EARLY) and name != _FOLLOWED}
    if any(env.get(name) != ours.get(name) for name in early) or not {*path} >= {*prepared.path}:
        return False
    further = {*added, *path}.difference(prepared.path)
    return not any(_modules_in(folder) & (prepared.names | _BEFORE_ALL) for folder in further)


def _modules_in(folder: str) -> set[str]:
    """What can be imported from there, and more."""
    with suppress(OSError):
        found = {name.partition(".") for name in os.listdir(folder)}  # noqa: PTH208
        return {name for name, _, kind in found if kind != "pth"}
    return set()


def _path_of(python: str, ours: Sequence[str]) -> list[str]:
    """Where a virtual environment of this Python looks for modules; nowhere if only it can tell."""
    libraries = next((at for at, name in enumerate(ours) if name.endswith("site-packages")), len(ours))
    found = list(ours[:libraries])
    for site in Path(python).parent.parent.glob("lib/python*/site-packages"):
        found.append(str(site))
        for file in sorted(site.glob("*.pth")):
            for line in filter(None, map(str.strip, file.read_text(encoding="utf-8").splitlines())):
                if line.startswith("import"):
                    return []
                found.append(str(site / line))
    return found


def _own_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name in PASSED_ON}
