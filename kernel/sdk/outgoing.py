"""Errors and parts of calls to other servers."""

from kernel.libs.outgoing.client import OutgoingCall
from kernel.libs.outgoing.destinations import CheckedResolver, Destinations
from kernel.libs.outgoing.errors import (
    AnswerBroken,
    AnswerTooLarge,
    CallFailed,
    CallTimedOut,
    DestinationRefused,
)

__all__ = [
    "AnswerBroken",
    "AnswerTooLarge",
    "CallFailed",
    "CallTimedOut",
    "CheckedResolver",
    "DestinationRefused",
    "Destinations",
    "OutgoingCall",
]
