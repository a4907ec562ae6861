"""The time slices of a process that asks for short ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ABOUT = Path("/proc/thread-self/sched")  # only on kernels with scheduler debugging
SLICES = """
import threading
from pathlib import Path
from kernel.scheduling import use_short_slices

def tell():
    lines = Path("/proc/thread-self/sched").read_text().splitlines()
    print(*(line.split(":")[1] for line in lines if line.startswith("se.slice")))

tell()
use_short_slices()
tell()
thread = threading.Thread(target=tell)
thread.start()
thread.join()
"""


@pytest.mark.skipif(
    not ABOUT.exists() or "se.slice" not in ABOUT.read_text(encoding="utf-8"),
    reason="the kernel does not show time slices (Linux 6.12 or later, with scheduler debugging)",
)
def test_one_thread_has_short_slices() -> None:
    """The thread that asks; those that it starts have slices of the usual length."""
    told = subprocess.run([sys.executable, "-c", SLICES], capture_output=True, text=True, check=True)
    usual, asked, started = map(int, told.stdout.split())
    assert asked == 100_000 < usual == started
