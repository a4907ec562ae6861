"""When Python's collector of reference circles looks: seldom while a process starts, rarely afterwards.

What a start makes (modules, models, tables) stays until the end. Looking at it again and again took a tenth
of the start's processor time.
"""

from __future__ import annotations

import gc

_WHILE_STARTING = 200_000
_AFTERWARDS = (20_000, 20, 20)


def seldom() -> None:
    """From here until `settle`: call it before anything heavy is imported."""
    gc.set_threshold(_WHILE_STARTING, 50, 50)


def settle() -> None:
    """The start is over: look once, then never again at what is there now."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_AFTERWARDS)
