"""What is wrong with a manifest, in a form that an operator can act on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

ROOT = "root"


@dataclass(frozen=True, slots=True)
class Problem:
    """One defect of a manifest.

    `path`: keys joined with ` -> `, or `root`. `line` and `column` count from 1 and are None when unknown.
    `failed_value`: the offending value as short text, None when there is none or it could be a secret.
    """

    path: str
    message: str
    remedy: str
    failed_value: str | None = None
    line: int | None = None
    column: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the item of a 422 `detail` array: path, message, remedy, and what else is known."""
        required = {"path": self.path, "message": self.message, "remedy": self.remedy}
        extra = {"failed_value": self.failed_value, "line": self.line, "column": self.column}
        return required | {key: value for key, value in extra.items() if value is not None}

    def __str__(self) -> str:
        column = f", column {self.column}" if self.column else ""
        where = self.path if self.line is None else f"{self.path} (line {self.line}{column})"
        return f"{where}: {self.message}. {self.remedy}"


class ManifestError(ValueError):
    """A manifest that cannot be read or is not valid; `problems` is never empty."""

    def __init__(self, source: str, problems: Sequence[Problem]) -> None:
        super().__init__(f"{source}: " + "; ".join(map(str, problems)))
        self.source = source
        self.problems = list(problems)


def join_path(keys: Sequence[object]) -> str:
    """Join the keys that lead to a value, for instance `spec -> trigger -> type`."""
    return " -> ".join(shorten(str(key)) for key in keys) or ROOT


def shorten(text: str, limit: int = 80) -> str:
    """Cut a text that comes from outside before it goes into a message."""
    return text if len(text) <= limit else text[: limit - 1] + "\u2026"
