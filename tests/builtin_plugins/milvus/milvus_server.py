"""Milvus Lite as a server of its own process, which can be killed and started again at its address."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from builtin_plugins.milvus.settings import MilvusSettings


class MilvusLite:
    """A server on a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log = folder.with_suffix(".log")
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    @property
    def settings(self) -> MilvusSettings:
        return MilvusSettings(uri=f"http://127.0.0.1:{self.port}", timeout_seconds=5)

    def start(self) -> None:
        """Start it, and return once it answers."""
        command = [sys.executable, "-m", "milvus_lite", "server", "--host", "127.0.0.1"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--port", str(self.port), "--data-dir", str(self.folder)],
                stdout=log,
                stderr=log,
            )
        from grpc import channel_ready_future, insecure_channel

        with insecure_channel(f"127.0.0.1:{self.port}") as channel:
            channel_ready_future(channel).result(timeout=60)

    def kill(self) -> None:
        """End it at once, whatever it does."""
        if self._process is not None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    async def again(self) -> None:
        """Start it again without holding up others."""
        await asyncio.to_thread(self.start)


@contextmanager
def running_lite(folder: Path) -> Iterator[MilvusLite]:
    server = MilvusLite(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()
