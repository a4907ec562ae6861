"""The messages between the platform and a prepared process: one JSON object per line, over a socket pair."""

from __future__ import annotations

import json
import socket
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from kernel.libs.children.confinement import Reach
from kernel.libs.children.limits import ChildLimits

DESCRIPTORS: Final = 3
Reason: TypeAlias = Literal["failed", "unavailable", "memory", "timeout", "output", "crashed", "killed"]


class ChildTask(NamedTuple):
    """One child to be forked: a callable with its arguments, or a program with its command line.

    Three descriptors are sent with it: the child's input, where its answer goes, and its standard error. The
    modules in `ahead` are imported before the fork, for this child and later ones. `reach` confines it.
    """

    number: int
    limits: ChildLimits
    target: str | None = None
    arguments: list[Any] = []
    command: list[str] | None = None
    environment: dict[str, str] = {}
    folder: str | None = None
    ahead: list[str] = []
    reach: Reach | None = None

    def dump(self) -> bytes:
        """Return the task as a line."""
        return json.dumps({"task": self._asdict()}).encode() + b"\n"

    @classmethod
    def load(cls, fields: dict[str, Any]) -> ChildTask:
        """Read a task."""
        reach = None if fields["reach"] is None else Reach(*fields["reach"])
        return cls(**{**fields, "limits": ChildLimits(*fields["limits"]), "reach": reach})


class Lines:
    """The messages that arrive on a socket, with the descriptors that came with them."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._rest = b""
        self._descriptors: list[int] = []

    def receive(self) -> list[dict[str, Any]] | None:
        """The messages of one read; None at the end. Blocks until something arrives."""
        data, descriptors, _flags, _address = socket.recv_fds(self._socket, 65_536, 16)
        self._descriptors += descriptors
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def descriptors(self) -> list[int]:
        """The descriptors of the next task; the caller closes them."""
        descriptors, self._descriptors = self._descriptors[:DESCRIPTORS], self._descriptors[DESCRIPTORS:]
        return descriptors


def send(sock: socket.socket, message: dict[str, Any]) -> None:
    """Send a message on a blocking socket."""
    sock.sendall(json.dumps(message).encode() + b"\n")
