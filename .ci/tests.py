"""Runs `./setup.sh test`, then failed tests once more by themselves.

    python .ci/tests.py [ARGS]

A test that fails again fails the run; so do more than a dozen failures at first. A test that failed only the
first time is named at the end: it is flaky and must be fixed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MOST = 12
FAILED = Path(".pytest_cache/v/cache/lastfailed")
TESTS_FAILED = 1  # pytest's exit code; others mean that it did not finish


def test(*arguments: str) -> int:
    return subprocess.run(["./setup.sh", "test", *arguments], check=False).returncode


def say(*lines: str) -> None:
    sys.stdout.write("\n".join([*lines, ""]))
    sys.stdout.flush()


def main() -> int:
    FAILED.unlink(missing_ok=True)
    code = test(*sys.argv[1:])
    if code != TESTS_FAILED:
        return code
    failed = sorted(json.loads(FAILED.read_text(encoding="utf-8"))) if FAILED.exists() else []
    if not 0 < len(failed) <= MOST:
        return code
    again = [name for name in failed if not passes_alone(name)]
    unsteady = [name for name in failed if name not in again]
    for kind, names in (
        ("FAILED TWICE", again),
        ("UNSTEADY, TO BE MENDED: failed once, passed alone", unsteady),
    ):
        if names:
            say("", "!" * 100, f"!! {kind}", *(f"!!   {name}" for name in names), "!" * 100)
    return TESTS_FAILED if again else 0


def passes_alone(name: str) -> bool:
    say("", f"== once more, alone: {name} ==")
    return test("-n", "0", name) == 0


if __name__ == "__main__":
    sys.exit(main())
