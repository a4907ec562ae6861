"""A terminal for tests: runs a program on a pseudo-terminal and answers what its screen shows at the end."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
from collections.abc import Mapping, Sequence

from tests.fakes.prepared import Forked, fork
from tests.fakes.processes import process_environment

SILENCE = 60  # seconds
Reply = tuple[str, str | signal.Signals]
_PIECE = re.compile(r"\x1b\[(?P<count>\d*)[?\d;]*(?P<command>[A-Za-z])|(?P<char>.)", re.DOTALL)


def shown_by(
    *arguments: str, env: Mapping[str, str], columns: int = 80, replies: Sequence[Reply] = ()
) -> tuple[int, str]:
    """Exit code and screen of `platformctl ARGUMENTS` on a terminal of `columns`.

    `replies` are prompts that may appear, in this order, and the line that is typed after each, or the signal
    that is sent then. A prompt for a password ends with its blank: what is typed before that is thrown away.
    Raises TimeoutError.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 200, columns, 0, 0))
    values = process_environment({"TERM": "xterm-256color", **env})
    process = fork(("-P", "-m", "cli", *arguments), env=values, streams=(theirs,) * 3, session=True)
    assert process is not None, "it can't be forked"
    os.close(theirs)
    try:
        written = _talk(ours, list(replies), process)
    except TimeoutError:
        process.kill()
        raise
    finally:
        os.close(ours)
    return process.join(60), "\n".join(screen(written.decode(), columns))


def _talk(descriptor: int, replies: list[Reply], process: Forked) -> bytes:
    """Everything that is written to the terminal; each prompt is answered when it appears."""
    written, answered = b"", 0
    pressed: signal.Signals | None = None
    while True:
        if not _says_something(descriptor, process, pressed):
            raise TimeoutError(f"nothing happens on the terminal after: {written[-500:]!r}")
        try:
            piece = os.read(descriptor, 4096)
        except OSError:  # Linux ends a terminal that nobody writes to with EIO.
            return written
        if not piece:
            return written
        written += piece
        at = written.find(replies[0][0].encode(), answered) if replies else -1
        if at >= 0:
            answered = at + len(replies[0][0].encode())
            _, reply = replies.pop(0)
            if isinstance(reply, str):
                os.write(descriptor, reply.encode() + b"\n")
            else:
                pressed = reply
                process.send_signal(reply)


def _says_something(descriptor: int, process: Forked, pressed: signal.Signals | None) -> bool:
    """Wait until something is written. A key is pressed again and again: a program that is just about to read
    misses a signal.
    """
    for _ in range(SILENCE):
        if select.select([descriptor], [], [], 1.0)[0]:
            return True
        if pressed is not None:
            process.send_signal(pressed)
    return False


def screen(written: str, columns: int) -> list[str]:
    """The lines of the screen after `written`, without the blanks at their ends."""
    lines: list[list[str]] = [[]]
    row = column = 0
    for piece in _PIECE.finditer(written):
        char, command = piece["char"], piece["command"]
        if char == "\r":
            column = 0
        elif char == "\n":
            row += 1
        elif char is not None:
            row, column = (row + 1, 0) if column == columns else (row, column)
            _put(lines, row, column, char)
            column += 1
        elif command == "A":
            row = max(0, row - int(piece["count"] or 1))
        elif command == "K":
            _line(lines, row).clear()
    return ["".join(line).rstrip() for line in lines]


def _line(lines: list[list[str]], row: int) -> list[str]:
    lines.extend([] for _ in range(row + 1 - len(lines)))
    return lines[row]


def _put(lines: list[list[str]], row: int, column: int, char: str) -> None:
    line = _line(lines, row)
    line.extend(" " * (column + 1 - len(line)))
    line[column] = char
