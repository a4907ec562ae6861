"""When Python's collector of reference circles looks: seldom while a process starts, rarely afterwards.

What a start makes (modules, models, tables) stays until the end. Looking at it again and again took a tenth
of the start's processor time; looking once, at its end, another tenth, and found next to nothing.
"""

from __future__ import annotations

import gc

_WHILE_STARTING = 1_000_000  # more than a start makes, and a limit for a long migration
_AFTERWARDS = (20_000, 20, 20)


def seldom() -> None:
    """From here until `settle`: call it before anything heavy is imported."""
    gc.set_threshold(_WHILE_STARTING, 50, 50)


def settle() -> None:
    """The start is over: never look at what is there now."""
    gc.freeze()
    gc.set_threshold(*_AFTERWARDS)
