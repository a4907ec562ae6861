"""When Python's garbage collector runs: seldom while a process starts, rarely afterwards, never at exit.

The objects of a start (modules, models, tables) live until the process ends. Scanning them again and again
took a tenth of the start's processor time; a scan at the end of the start took another tenth and found next
to nothing; one at the end of a command took a fifth of its total.
"""

from __future__ import annotations

import atexit
import gc

_WHILE_STARTING = 1_000_000  # more objects than a start makes, but a limit for a long migration
_AFTERWARDS = (20_000, 20, 20)


def seldom() -> None:
    """Collect seldom until `settle`; call this before heavy imports."""
    gc.set_threshold(_WHILE_STARTING, 50, 50)


def settle() -> None:
    """The start is over: never scan the present objects again."""
    gc.freeze()
    gc.set_threshold(*_AFTERWARDS)


def skip_at_exit() -> None:
    """Skip the collection at exit: the system reclaims all memory anyway.

    Close and flush everything first.
    """
    atexit.register(gc.freeze)
