"""Temporary files: swept when their process is gone, and never another machine's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernel.stores.disk import Scratch

MAKE = """
import sys
from pathlib import Path
from kernel.stores.disk import Scratch
path = Scratch(Path(sys.argv[1])).new()
path.touch()
print(path, flush=True)
sys.stdin.read()
"""


def test_of_a_process_that_lives(tmp_path: Path) -> None:
    """Files of living processes stay, ours and another one's; those of a killed one go."""
    scratch = Scratch(tmp_path)
    mine = scratch.new(".pdf")
    mine.touch()
    command = [sys.executable, "-c", MAKE, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        theirs = Path(process.stdout.readline().strip())
        assert scratch.sweep() == 0
        process.kill()
        process.wait()
        assert scratch.sweep() == 1
    assert (mine.exists(), theirs.exists()) == (True, False)


def test_of_another_machine(tmp_path: Path) -> None:
    """A file of another machine on a shared folder says nothing by its process number: a day must pass."""
    fresh, old = (tmp_path / f"{'0' * 12}-4194000-{digit * 32}" for digit in "ab")
    for path in (fresh, old):
        path.touch()
    yesterday = time.time() - 25 * 3600
    os.utime(old, (yesterday, yesterday))
    assert Scratch(tmp_path).sweep() == 1
    assert (fresh.exists(), old.exists()) == (True, False)


def test_a_folder(tmp_path: Path) -> None:
    """What was unpacked by a process that is gone goes with its folder, and keeps nothing else from going."""
    command = [sys.executable, "-c", MAKE, str(tmp_path)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    theirs = Path(done.stdout.strip())
    for suffix in ("a.members", "z.members"):
        (tmp_path / (theirs.name + suffix)).mkdir()
        (tmp_path / (theirs.name + suffix) / "private.txt").write_text("private")
    assert Scratch(tmp_path).sweep() == 3
    assert list(tmp_path.iterdir()) == []


def test_of_another_container(tmp_path: Path) -> None:
    """On this machine, but where processes have numbers of their own: they mean nothing here either."""
    command = ["unshare", "--map-root-user", "--pid", "--fork", sys.executable, "-c", MAKE, str(tmp_path)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if not done.stdout:
        pytest.skip(f"this machine makes no namespaces: {done.stderr}")
    made = Path(done.stdout.strip())
    of_nobody_here = made.with_name(re.sub("-[0-9]+-", "-4194000-", made.name))
    made.rename(of_nobody_here)
    assert Scratch(tmp_path).sweep() == 0
    assert of_nobody_here.exists()


def test_a_number_that_was_given_again(tmp_path: Path) -> None:
    """A file that is older than the process of its number was another process's."""
    scratch = Scratch(tmp_path)
    path = scratch.new()
    path.touch()
    before_boot = time.time() - 20 * 3600
    os.utime(path, (before_boot, before_boot))
    started = Path(f"/proc/{os.getpid()}").stat().st_ctime
    assert scratch.sweep() == (1 if started > before_boot + 1 else 0)


def test_no_folder(tmp_path: Path) -> None:
    """There is nothing to sweep where nothing was made."""
    assert Scratch(tmp_path / "nowhere").sweep() == 0
