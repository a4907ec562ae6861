"""A plugin's recognizer that reads two lines into every picture, and is sure of the first one only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from builtin_plugins.documents.api import RecognizedWord
from kernel.sdk import Plugin, hookimpl


class UnsureRecognizer(Plugin):
    """Declares `read`, which runs in a parser's process."""

    name = "unsure_recognizer"
    version = "1.0"
    requires = ("documents",)

    @hookimpl
    def find_recognizer(self) -> str:
        return f"{__name__}:read"


def read(_picture: bytes, _page: int | None) -> Iterator[Sequence[RecognizedWord]]:
    """Two lines of words."""
    for line, certainty in (
        ("The fee of the northern harbour is 12 euro for every night and boat.", 0.95),
        ("The fee of the southern harbour is 72 euro for every night and boat.", 0.4),
    ):
        yield [RecognizedWord(word, certainty) for word in line.split()]
