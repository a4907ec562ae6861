"""The one shape in which benchmarks print their figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A figure beside its budget."""

    budget: str
    what: str
    figure: str
    wanted: str
    met: bool


def print_table(rows: Sequence[Row]) -> None:
    print("| # | What | Figure | Budget | Met |")
    print("| --- | --- | --- | --- | --- |")
    for row in rows:
        print(f"| {row.budget} | {row.what} | {row.figure} | {row.wanted} | {'yes' if row.met else 'NO'} |")
