"""Programs of others in environments of their own, made once for each list of versions on a machine.

    python -m tests.fakes.client_environments      makes all of them, as CI does before the tests

`tests/clients/NAME.txt` lists what goes into an environment. Their requirements contradict each other's and
the platform's.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kernel.testing import services_required

CLIENTS = Path(__file__).parents[1] / "clients"


def environment_of(name: str) -> Path:
    """The folder with the programs of that environment, `python` among them.

    Skips if pip can't install them, or fails where services are required.
    """
    versions = CLIENTS / f"{name}.txt"
    recipe = versions.read_bytes() + sys.version.encode()
    digest = hashlib.sha256(recipe).hexdigest()[:16]
    target = Path(tempfile.gettempdir()) / f"platform-test-{name}-{os.getuid()}-{digest}"
    with target.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (target / "made").exists():
            shutil.rmtree(target, ignore_errors=True)
            _make(target, versions)
    assert target.stat().st_uid == os.getuid(), f"{target} was made by somebody else"
    return target / "bin"


def _make(target: Path, versions: Path) -> None:
    """An environment keeps its own path in its programs, so it is made in its place."""
    subprocess.run([sys.executable, "-m", "venv", target], check=True)
    install = [target / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps", "-r", versions]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = f"pip can't install {versions.name}: {done.stderr[-2000:]}"
        pytest.fail(reason) if services_required() else pytest.skip(reason)
    (target / "made").touch()


def main() -> None:
    for versions in sorted(CLIENTS.glob("*.txt")):
        sys.stdout.write(f"{environment_of(versions.stem)}\n")


if __name__ == "__main__":
    main()
