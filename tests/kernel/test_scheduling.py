"""How soon a thread gets its turn, in a process that asks for short turns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ABOUT = Path("/proc/thread-self/sched")  # which kernels show that are made with it
TURNS = """
import threading
from pathlib import Path
from kernel.scheduling import take_short_turns

def tell():
    lines = Path("/proc/thread-self/sched").read_text().splitlines()
    print(*(line.split(":")[1] for line in lines if line.startswith("se.slice")))

tell()
take_short_turns()
tell()
thread = threading.Thread(target=tell)
thread.start()
thread.join()
"""


@pytest.mark.skipif(
    not ABOUT.exists() or "se.slice" not in ABOUT.read_text(encoding="utf-8"),
    reason="the kernel does not show how long a turn is (Linux 6.12 and later, with scheduler debugging)",
)
def test_one_thread_takes_short_turns() -> None:
    """The event loop's; threads that it starts take turns as before."""
    told = subprocess.run([sys.executable, "-c", TURNS], capture_output=True, text=True, check=True)
    usual, asked, started = map(int, told.stdout.split())
    assert asked == 100_000 < usual == started
