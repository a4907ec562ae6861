"""The bounds that every parsed manifest keeps, whichever syntax it was written in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from .problems import Problem, join_path, shorten

MAX_MANIFEST_BYTES = 256 * 1024
MAX_DEPTH = 32
MAX_NODES = 10_000

# NUL cannot be stored as text by PostgreSQL, and a lone surrogate cannot be written as UTF-8.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_INT64 = range(-(2**63), 2**63)
MAX_INT_DIGITS = 20


class TreeError(ValueError):
    """One reason why a document is not an acceptable tree; `problem` tells where, what and how to fix it."""

    def __init__(
        self,
        message: str,
        remedy: str,
        *,
        keys: Sequence[object] = (),
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message)
        self.problem = Problem(join_path(keys), message, remedy, line=line, column=column)

    def locate(self, keys: Sequence[object], line: int, column: int) -> None:
        """Set where it happened, unless a deeper caller already has."""
        if self.problem.line is None:
            self.problem = replace(self.problem, path=join_path(keys), line=line, column=column)


def check_text(text: str) -> str:
    """Return the text itself; raises TreeError for characters that no store can keep."""
    if _UNSTORABLE.search(text):
        raise TreeError("The text has a NUL character or half of a surrogate pair", "Remove the character.")
    return text


def check_int(text: str) -> int:
    """Convert decimal digits; raises TreeError beyond 64 bits, which JSON readers do not carry exactly."""
    value = int(text) if len(text) <= MAX_INT_DIGITS else None
    if value is None or value not in _INT64:
        raise TreeError("The number is too large", "Put quotes around it to keep it as text.")
    return value


def check_float(text: str) -> float:
    """Convert a decimal number; raises TreeError when it overflows to infinity, which JSON cannot carry."""
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise TreeError("The number is too large", "Put quotes around it to keep it as text.")
    return value


def check_depth(depth: int) -> None:
    """Raise TreeError when a document nests deeper than MAX_DEPTH."""
    if depth > MAX_DEPTH:
        raise TreeError(f"The document is nested more than {MAX_DEPTH} levels deep", "Flatten the document.")


def duplicate(key: str, keys: Sequence[object] = ()) -> TreeError:
    """Return the error for a key that appears twice in one object."""
    return TreeError(
        f"The key {shorten(key)!r} appears twice in one object", "Keep one of the two.", keys=keys
    )
