"""How a call to another server can fail. The texts name only the host: no path, query or header."""

from __future__ import annotations

from typing import Literal

FailedStep = Literal["name", "connection", "tls"]


class OutgoingError(Exception):
    """Base of these errors."""


class DestinationRefused(OutgoingError):
    """The call is not allowed: the address is private, or the host is not on the list."""


class CallFailed(OutgoingError):
    """No connection, or it was lost before the response began.

    `step`: the host has no address (`name`), its certificate or TLS is not valid (`tls`), else `connection`.
    """

    def __init__(self, message: str, step: FailedStep = "connection") -> None:
        super().__init__(message)
        self.step = step


class CallTimedOut(OutgoingError):
    """The server was silent for too long, or took too long overall. `connecting`: it did not even accept a
    connection.
    """

    def __init__(self, host: str, *, connecting: bool = False) -> None:
        super().__init__(f"{host} did not {'accept the connection' if connecting else 'respond'} in time")
        self.connecting = connecting


class AnswerBroken(OutgoingError):
    """The response ended early, or is not HTTP."""


class AnswerTooLarge(OutgoingError):
    """The decompressed response is larger than the limit."""

    def __init__(self, host: str, limit: int) -> None:
        super().__init__(f"the response from {host} is larger than {limit} bytes")
        self.limit = limit
