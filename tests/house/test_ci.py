"""What CI makes of tests that fail: once more alone, and the unsteady ones are named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2] / ".ci" / "tests.py"
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
