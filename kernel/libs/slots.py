"""Numbers for processes that share a folder; each takes the first free one (`flock(2)`).

A killed process releases its number.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import NamedTuple, TextIO


class Slot(NamedTuple):
    """A number that belongs to this process until `handle` is closed."""

    number: int
    handle: TextIO


def take_slot(folder: Path, most: int, prefix: str = "") -> Slot:
    """The first free number below `most`, held by the file `<prefix><number>.lock`.

    Raises OSError if all are taken.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(most):
        handle = (folder / f"{prefix}{number}.lock").open("a")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.close()
            continue
        except OSError:
            handle.close()
            raise
        return Slot(number, handle)
    raise OSError(f"{most} processes already use {folder.name}")
