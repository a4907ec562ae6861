"""How many cores each kind of process had during a measurement."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import psutil

Pids = Callable[[], Iterable[int]]


@dataclass
class Shares:
    """Cores by kind of process, all cores that were busy, and for how long; whole after the measurement."""

    cores: dict[str, float] = field(default_factory=dict)
    busy: float = 0.0
    seconds: float = 0.0

    def __str__(self) -> str:
        parts = ", ".join(f"{kind} {cores:.2f}" for kind, cores in self.cores.items() if cores >= 0.005)
        other = self.busy - sum(self.cores.values())
        return f"cores: {parts}, other programs {other:.2f}; {self.busy:.2f} of {psutil.cpu_count()} busy"

    def each(self, count: float) -> dict[str, float]:
        """Milliseconds of processor time for each of `count` things that were done, by kind."""
        return {kind: cores * self.seconds * 1000 / count for kind, cores in self.cores.items()}


@asynccontextmanager
async def shares(kinds: Mapping[str, Pids]) -> AsyncIterator[Shares]:
    """Measure during the block; each kind names its processes, whose children count with them."""
    found = Shares()
    before, busy, began = _all(kinds), _busy(), time.perf_counter()
    yield found
    found.seconds = time.perf_counter() - began
    found.busy = (_busy() - busy) / found.seconds
    after = _all(kinds)
    found.cores = {kind: (after[kind] - before[kind]) / found.seconds for kind in kinds}


def _all(kinds: Mapping[str, Pids]) -> dict[str, float]:
    return {kind: sum(map(_spent, pids())) for kind, pids in kinds.items()}


def _spent(pid: int) -> float:
    """Processor time of a process and of all that it started, those that ended included."""
    total = 0.0
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                total += sum(each.cpu_times()[:4])  # of itself, and of children that it waited for
    return total


def _busy() -> float:
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait - times.guest - times.guest_nice)
