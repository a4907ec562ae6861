"""What B18 measured, read further: where its curves flatten, and larger platforms on paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import psutil

from tests.benchmarks.shares import Shares
from tests.benchmarks.table import Row

QUESTIONS_PER_SECOND = 1_000
MANY_PASSAGES = 10_000_000
_WORTH_IT = 1.15
"""A step that brings less than this is where a curve is flat."""


@dataclass(frozen=True)
class Point:
    """A rate with so many processes, and who had the processor."""

    processes: int
    rate: float
    shares: Shares


@dataclass(frozen=True)
class PassageCost:
    """What one passage costs: kilobytes in PostgreSQL by part; in each API process kilobytes, and
    milliseconds before its first answer.
    """

    stored: Mapping[str, float]
    memory: float
    loading: float


def flattening(what: str, curve: Sequence[Point]) -> Row:
    """Where more processes stop to bring anything, and what bounds them there."""
    steps = [(one, more, more.rate / one.rate) for one, more in pairwise(curve)]
    flat = next((step for step in steps if step[2] < _WORTH_IT), None)
    last = curve[-1] if flat is None else flat[1]
    gains = ", ".join(f"{one.processes} → {more.processes}: {gain:.2f} x" for one, more, gain in steps)
    where = "not flat yet" if flat is None else f"flat from {flat[0].processes} on"
    return Row("B18", f"{what}: more processes", f"{where} ({gains}); {bound(last.shares)}", "none", True)


def bound(spent: Shares) -> str:
    """Whether the processor was used up, and the part of each kind of process."""
    cores = psutil.cpu_count() or 1
    used = spent.busy / cores
    others = spent.busy - sum(spent.cores.values())
    parts = sorted({**spent.cores, "other programs": others}.items(), key=lambda part: -part[1])
    told = ", ".join(f"{kind} {each / spent.busy:.0%}" for kind, each in parts if each >= 0.01 * spent.busy)
    why = "bound by the processor" if used >= 0.9 else "not by the processor: something waits"
    return f"{why}, {spent.busy:.2f} of {cores} cores busy: {told}"


def thousand_questions(cost: Mapping[str, float]) -> Row:
    """Cores for a thousand questions a second; `cost` is milliseconds of each kind for one."""
    parts = {kind: each * QUESTIONS_PER_SECOND / 1000 for kind, each in cost.items() if kind != "load"}
    figure = ", ".join(f"{kind} {cores:.1f}" for kind, cores in parts.items() if cores >= 0.05)
    return Row("B18", f"{QUESTIONS_PER_SECOND:,} questions/s on paper, cores", figure, "none", True)


def many_passages(cost: PassageCost) -> list[Row]:
    """Ten million of them."""
    million = MANY_PASSAGES / 1e6
    parts = {kind: each * million for kind, each in cost.stored.items() if each >= 0.005}
    stored = ", ".join(f"{kind} {size:.0f} GB" for kind, size in parts.items())
    held = (
        f"{cost.memory * million:.0f} GB of memory in each API process that searches, "
        f"{cost.loading * MANY_PASSAGES / 60_000:.0f} minutes before its first answer"
    )
    what = f"{MANY_PASSAGES:,} passages on paper"
    return [
        Row("B18", f"{what}, PostgreSQL", f"{stored}: {sum(parts.values()):.0f} GB", "none", True),
        Row("B18", f"{what}, index of words", held, "none", True),
    ]
