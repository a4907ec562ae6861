"""Texts of a source as every database takes them, and long lists in portions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

_LONGEST: Final = 255


def digest_of(identity: str) -> str:
    """How an identity of any length is looked up."""
    return hashlib.sha256(identity.encode(errors="surrogatepass")).hexdigest()


def brief(text: str | None) -> str | None:
    """A text that only has to be equal or not, such as an etag, in at most 255 characters."""
    return text if text is None or (len(text) <= _LONGEST and text.isprintable()) else digest_of(text)


def storable(text: str) -> str:
    """A text as every database takes it: what is no character is replaced."""
    return text.encode(errors="replace").decode().replace("\0", "?")


def exact(text: str | None, most: int) -> str | None:
    """A text that must be equal to the letter; None if no database takes it as it is."""
    return text if text and len(text) <= most and text == storable(text) else None


def portions(whole: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """A list in parts of at most this size."""
    for start in range(0, len(whole), size):
        yield whole[start : start + size]
