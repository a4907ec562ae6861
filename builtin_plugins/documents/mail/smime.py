"""Extracts the message wrapped in an S/MIME signature (RFC 8551 3.5.2: `smime.p7m`).

Signatures are not verified: the text is read like that of any message. Encrypted data stays closed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

_SIGNED: Final = bytes.fromhex("2a864886f70d010702")  # the OID of signed data, 1.2.840.113549.1.7.2
# Enveloped, encrypted and authenticated-enveloped data.
_ENCRYPTED: Final = tuple(
    map(bytes.fromhex, ("2a864886f70d010703", "2a864886f70d010706", "2a864886f70d0109100117"))
)
_KIND_BYTES: Final = 32
_NAME, _SEQUENCE, _CONTENT, _OCTETS, _OCTETS_IN_PARTS = 0x06, 0x30, 0xA0, 0x04, 0x24
_UNTIL_END: Final = 0x80  # the indefinite length: until two zeros (X.690, 8.1.3.6)
_END: Final = b"\0\0"


class _Element(NamedTuple):
    tag: int
    start: int
    end: int


def signed_content(data: bytes) -> bytes | None:
    """The signed content; None for other data, or if it is damaged before its end."""
    try:
        info = _only(data, _Element(_SEQUENCE, 0, len(data)), _SEQUENCE)
        if data[slice(*_only(data, info, _NAME)[1:])] != _SIGNED:
            return None
        signed = _only(data, _only(data, info, _CONTENT), _SEQUENCE)
        encapsulated = _only(data, _only(data, signed, _SEQUENCE), _CONTENT)
        return b"".join(_octets(data, encapsulated))
    except (IndexError, StopIteration):
        return None


def is_encrypted(data: bytes) -> bool:
    """Whether the data is encrypted, by the content type at its beginning."""
    return any(bytes([_NAME, len(kind)]) + kind in data[:_KIND_BYTES] for kind in _ENCRYPTED)


def _only(data: bytes, parent: _Element, tag: int) -> _Element:
    """The first element of a kind inside another."""
    return next(one for one in _inside(data, parent) if one.tag == tag)


def _octets(data: bytes, parent: _Element) -> Iterator[bytes]:
    for element in _inside(data, parent):
        if element.tag == _OCTETS:
            yield data[element.start : element.end]
        elif element.tag == _OCTETS_IN_PARTS:
            yield from (data[part.start : part.end] for part in _inside(data, element) if part.tag == _OCTETS)


def _inside(data: bytes, parent: _Element) -> Iterator[_Element]:
    at = parent.start
    while at < parent.end and data[at : at + 2] != _END:
        tag, (start, length) = data[at], _length(data, at + 1)
        end = _end(data, start) if length is None else start + length
        if end > len(data):
            raise IndexError(end)
        yield _Element(tag, start, end)
        at = end + len(_END) if length is None else end


def _length(data: bytes, at: int) -> tuple[int, int | None]:
    """Where the content begins, and its length, if that is definite."""
    first = data[at]
    if first <= _UNTIL_END:
        return at + 1, None if first == _UNTIL_END else first
    more = first - _UNTIL_END
    return at + 1 + more, int.from_bytes(data[at + 1 : at + 1 + more], "big")


def _end(data: bytes, at: int) -> int:
    """Where the two zeros are that end the content starting here."""
    depth = 1
    while True:
        if data[at : at + 2] == _END:
            depth -= 1
            if depth == 0:
                return at
            at += len(_END)
        else:
            at, length = _length(data, at + 1)
            depth += length is None
            at += length or 0
