"""What can go wrong with another server; the texts are shown to operators and callers."""

from __future__ import annotations


class ServerFault(Exception):
    """The server can't be reached, or violates the protocol."""


class ServerSlow(ServerFault):
    """The server did not answer in time."""


class ServerRefused(Exception):
    """The server answered a request with an error of the protocol."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class ServerDenied(ServerFault):
    """The server refuses the credential."""
