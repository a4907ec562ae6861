"""When Python's garbage collector runs: seldom while a process starts, rarely afterwards, never at its end.

What a start makes (modules, models, tables) stays until the process ends. Going through it again and again
took a tenth of the start's processor time; once more when it was ready another tenth, and found next to
nothing; at the end of a command it took a fifth of the whole.
"""

from __future__ import annotations

import atexit
import gc

_WHILE_STARTING = 1_000_000  # more than a start makes, and a limit for a long migration
_AFTERWARDS = (20_000, 20, 20)


def seldom() -> None:
    """From here until `settle`: call it before anything heavy is imported."""
    gc.set_threshold(_WHILE_STARTING, 50, 50)


def settle() -> None:
    """The start is over: never look at objects that exist now."""
    gc.freeze()
    gc.set_threshold(*_AFTERWARDS)


def skip_at_exit() -> None:
    """Skip the collection at exit: the system takes all memory back anyway.

    Close and flush everything before that.
    """
    atexit.register(gc.freeze)
