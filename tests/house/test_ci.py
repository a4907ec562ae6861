"""What CI makes of tests that fail: once more alone, and unsteady ones are named. How test processes end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / ".ci" / "tests.py"
SETUP = f"""#!/bin/sh
shift
if [ "$1" = -n ]; then shift 2; fi
export PYTEST_DISABLE_PLUGIN_AUTOLOAD=1
exec {sys.executable} -m pytest -q --rootdir . -o addopts= "$@"
"""
CASES = """
import pathlib
import pytest

@pytest.mark.parametrize("number", range({number}))
def test_case(number):
    tried = pathlib.Path(f"tried-{{number}}")
    first = not tried.exists()
    tried.touch()
    assert not ({first_time} if first else {again})
"""

MUCH = """
KEPT = []

def test_case():
    KEPT.extend([] for _ in range(100_000))
"""
LOOKED_AT = """
import gc, pathlib, pytest

@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure():
    pathlib.Path(__file__).with_name("looked-at").write_text(str(len(gc.get_objects())))
"""


@pytest.mark.parametrize(
    ("number", "first_time", "again", "code", "said"),
    [
        (3, "False", "True", 0, ""),
        (3, "number < 2", "False", 0, "UNSTEADY"),
        (3, "number < 2", "number == 1", 1, "FAILED TWICE"),
        (13, "True", "False", 1, ""),
    ],
    ids=["all-pass", "unsteady", "broken", "too-many"],
)
def test_failed_tests(tmp_path: Path, number: int, first_time: str, again: str, code: int, said: str) -> None:
    (tmp_path / "setup.sh").write_text(SETUP)
    (tmp_path / "setup.sh").chmod(0o755)
    (tmp_path / "test_cases.py").write_text(CASES.format(number=number, first_time=first_time, again=again))
    done = subprocess.run(
        [sys.executable, TESTS], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == code, done.stdout + done.stderr
    end = done.stdout.partition("!!!!")[2]
    assert (said in end) if said else not end
    if said == "FAILED TWICE":
        assert (
            "test_case[1]" in end.partition("UNSTEADY")[0] and "test_case[0]" in end.partition("UNSTEADY")[2]
        )


def test_the_last_collection_is_short(tmp_path: Path) -> None:
    """pytest collects garbage after a process has reported its end, and xdist interrupts it five seconds
    later: there is little left to look at.
    """
    (tmp_path / "test_much.py").write_text(MUCH)
    (tmp_path / "conftest.py").write_text(LOOKED_AT)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "tests.conftest", tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int((tmp_path / "looked-at").read_text()) < 10_000
