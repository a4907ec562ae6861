"""How a call to another server can fail. Texts name the host and nothing more: no path, query or header."""

from __future__ import annotations


class OutgoingError(Exception):
    """Root of them all."""


class DestinationRefused(OutgoingError):
    """The call may not go there: a private address, or a host that is not on the list."""


class CallFailed(OutgoingError):
    """No connection, or it broke before the answer began: nothing was received."""


class CallTimedOut(OutgoingError):
    """The server was silent for too long, or took too long in all; `connecting` before a connection stood."""

    def __init__(self, host: str, *, connecting: bool = False) -> None:
        super().__init__(f"{host} did not {'take the connection' if connecting else 'answer'} in time")
        self.connecting = connecting


class AnswerBroken(OutgoingError):
    """The answer began and did not end, or is not HTTP."""


class AnswerTooLarge(OutgoingError):
    """The answer, decompressed, is larger than the caller takes."""

    def __init__(self, host: str, limit: int) -> None:
        super().__init__(f"the answer of {host} is larger than {limit} bytes")
        self.limit = limit
