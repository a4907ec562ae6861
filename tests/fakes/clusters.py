"""A PostgreSQL server of a test's own, which it may stop and start again as it likes."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernel.testing import missing
from tests.fakes.processes import free_port

_SYSTEM = Path("/usr/lib/postgresql")
_NOBODY = "postgres"  # the server refuses to run as root


class Cluster:
    """A server in a folder, on its own port."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._folder = folder
        self.port = free_port()
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def create(self) -> None:
        """Make its files."""
        self._run(
            "initdb",
            "--encoding=UTF8",
            "--auth=trust",
            "--username=postgres",
            "--no-sync",
            "-D",
            str(self._folder / "data"),
        )

    def start(self) -> None:
        """Start it and wait until it answers."""
        options = f"-p {self.port} -k {self._folder} -c listen_addresses=127.0.0.1 -c max_connections=60"
        self._control("start", "-o", options, "-l", str(self._folder / "log"))

    def stop(self, how: str = "fast") -> None:
        """Stop it: ``fast`` ends its connections, ``immediate`` is a crash."""
        self._control("stop", "-m", how)

    def restart(self, how: str = "fast") -> None:
        """Stop and start it."""
        self.stop(how)
        self.start()

    def _control(self, what: str, *options: str) -> None:
        self._run("pg_ctl", what, "-w", "-t", "60", "-D", str(self._folder / "data"), *options)

    def _run(self, program: str, *arguments: str) -> None:
        user = _NOBODY if os.geteuid() == 0 else None
        with tempfile.TemporaryFile("w+") as said:  # a pipe would stay open in the server
            done = subprocess.run(
                [str(self._programs / program), *arguments],
                user=user,
                cwd="/",
                env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                check=False,
            )
            said.seek(0)
            assert done.returncode == 0, said.read()


def _programs() -> Path | None:
    found = sorted(_SYSTEM.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    single = shutil.which("initdb")
    return None if single is None else Path(single).parent


@contextmanager
def own_cluster() -> Iterator[Cluster]:
    """A running server, removed afterwards. Skips where PostgreSQL is not installed."""
    programs = _programs()
    if programs is None:
        missing("initdb is not installed: no PostgreSQL server of one's own")
    assert programs is not None
    with tempfile.TemporaryDirectory(prefix="cluster-") as name:
        folder = Path(name)
        if os.geteuid() == 0:
            owner = pwd.getpwnam(_NOBODY)
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        cluster = Cluster(programs, folder)
        cluster.create()
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop("immediate")
