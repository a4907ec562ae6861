"""The one shape in which benchmarks print their figures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_TELLING = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "amx_bf16")
"""What decides how fast vectors are made."""


@dataclass(frozen=True)
class Row:
    """A figure beside its budget."""

    budget: str
    what: str
    figure: str
    wanted: str
    met: bool


def machine() -> str:
    """The processor, what it can do, and how many cores this process may use."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    known = dict(line.split(":", 1) for line in reversed(lines) if ":" in line)
    facts = {name.strip(): value.strip() for name, value in known.items()}
    features = [one for one in _TELLING if one in facts.get("flags", "").split()]
    cores = len(os.sched_getaffinity(0))
    model = facts.get("model name", "an unknown processor")
    return f"{cores} cores of {model} ({', '.join(features) or 'no AVX2'})"


def print_table(rows: Sequence[Row]) -> None:
    print(f"{machine()}\n")
    print("| # | What | Figure | Budget | Met |")
    print("| --- | --- | --- | --- | --- |")
    for row in rows:
        print(f"| {row.budget} | {row.what} | {row.figure} | {row.wanted} | {'yes' if row.met else 'NO'} |")
