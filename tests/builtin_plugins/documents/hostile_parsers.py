"""Parsers that misbehave, and one that a stranger could have written: targets of the runner's tests."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path


def stranger(path: Path) -> Iterator[str | tuple[str, int]]:
    """Yield plain values, as a plugin does that cannot import the platform's classes."""
    yield "a title"
    yield path.read_text(encoding="utf-8"), 3


def hang(path: Path) -> Iterator[str]:
    """Never return and use no processor time."""
    threading.Event().wait()
    yield ""


def spin(path: Path) -> Iterator[str]:
    """Never return and use all processor time."""
    while True:
        pass
    yield ""


def devour(path: Path) -> Iterator[str]:
    """Ask for memory until there is none."""
    hoard = []
    while True:
        hoard.append(bytearray(1 << 24))
    yield ""


def endless(path: Path) -> Iterator[str]:
    """Yield text for ever."""
    while True:
        yield "the same words over and over again " * 100


def flood(path: Path) -> Iterator[str]:
    """Write to the standard error for ever."""
    while True:
        os.write(2, b"x" * 1_000_000)
    yield ""


def crash(path: Path) -> Iterator[str]:
    """Die as a C library does."""
    os.abort()
    yield ""


def killed(path: Path) -> Iterator[str]:
    """Die as under the kernel's out-of-memory killer."""
    os.kill(os.getpid(), 9)
    yield ""


def bare_exit(path: Path) -> Iterator[str]:
    """Claim success without having written anything."""
    os._exit(0)
    yield ""


def raises_code(path: Path) -> Iterator[str]:
    """Raise an exception of its own with one of our codes and a text that no user must see."""
    error = RuntimeError("<script>stranger</script>")
    error.code = "encrypted"  # type: ignore[attr-defined]
    raise error
    yield ""


def wrong_type(path: Path) -> Iterator[object]:
    """Yield something that is no block."""
    yield {"text": "x"}


def unstorable(path: Path) -> Iterator[str]:
    """Yield characters that a database refuses."""
    yield "nul\x00 surrogate\ud800 break\r\nend\r"


def environment(path: Path) -> Iterator[str]:
    """Yield what the process knows from its environment and its limits."""
    yield "\n".join(sorted(os.environ))


def modules(path: Path) -> Iterator[str]:
    """Yield what is imported."""
    yield "\n".join(sorted(sys.modules))


def leaves_child(path: Path) -> Iterator[str]:
    """Start a process that would outlive the parser, and tell its id."""
    child = subprocess.Popen(["sleep", "600"])
    yield str(child.pid)


def announces_itself(path: Path) -> Iterator[str]:
    """Write its process id into its sink, a named pipe, then hang."""
    path.with_name("sink").write_text(str(os.getpid()), encoding="ascii")
    threading.Event().wait()
    yield ""
