"""Packages from npm that tests use, installed once for each version on a machine."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from kernel.testing import services_required


def npm_folder(source: Path, purpose: str) -> Path:
    """A copy of the files of `source`, a package with its lock file, with its dependencies installed.

    Skips, or fails where services are required, without node and npm; `purpose` names what needs them.
    """
    if shutil.which("node") is None or shutil.which("npm") is None:
        reason = f"{purpose} need node 20 or later and npm"
        pytest.fail(reason) if services_required() else pytest.skip(reason)
    files = sorted(path for path in source.iterdir() if path.is_file())
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
    target = Path(tempfile.gettempdir()) / f"platform-test-{source.name}-{os.getuid()}-{digest}"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=target.parent) as made:
            _install(Path(made) / "package", files)
            try:
                Path(made, "package").rename(target)
            except OSError:
                assert target.exists()  # another run of the tests was quicker
    assert target.stat().st_uid == os.getuid(), f"{target} was made by somebody else"
    return target


def _install(folder: Path, files: list[Path]) -> None:
    folder.mkdir()
    for path in files:
        shutil.copy(path, folder)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
