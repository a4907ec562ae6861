"""How much free memory the machine has."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_MEMINFO: Final = Path("/proc/meminfo")


def available_mb() -> int | None:
    """Memory that programs can still get without swapping; None if the system doesn't tell."""
    try:
        lines = _MEMINFO.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    available = next((line for line in lines if line.startswith("MemAvailable:")), None)
    return None if available is None else int(available.split()[1]) // 1024
