"""Bundles of rows from other instances: types that plugins exchange (`kernel.contracts`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from kernel.db.engine import Unit

ImportPolicy = Literal["skip", "rename", "fail"]
ImportOutcome = Literal["created", "skipped", "renamed", "failed", "collision"]


@dataclass(frozen=True, slots=True)
class ImportedRow:
    """What happened to a row of a bundle (`import_rows`). `kind` is its type, such as ``pipeline``."""

    outcome: ImportOutcome
    kind: str
    name: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """The sections of a bundle that a plugin takes, and the plain function that writes them.

    `write` returns, by section, one outcome for each row, in the same order.
    """

    sections: Sequence[str]
    write: Callable[[Unit], Mapping[str, Sequence[ImportedRow]]]
