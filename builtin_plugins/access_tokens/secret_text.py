"""The format of a token: `plk_`, 40 random characters, and a checksum of 6.

The prefix lets secret scanners find a token that was published: `plk_[0-9A-Za-z]{46}`. The checksum tells one
from a similar word without a look-up: CRC-32 of everything before it, in base 62.
"""

from __future__ import annotations

import hashlib
import secrets
import string
import zlib

PREFIX = "plk_"
_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM = 40  # 238 bits: storing a plain hash is safe
_CHECKSUM = 6
_LENGTH = len(PREFIX) + _RANDOM + _CHECKSUM


def new_token() -> str:
    """A new, random token."""
    head = PREFIX + "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM))
    return head + checksum(head)


def is_well_formed(token: str) -> bool:
    """Whether the checksum is right. If it isn't, the token is not one of ours, and no look-up is needed."""
    head = token[:-_CHECKSUM]
    return len(token) == _LENGTH and token.isascii() and token[-_CHECKSUM:] == checksum(head)


def checksum(head: str) -> str:
    """CRC-32 of `head` as six characters of base 62."""
    number, found = zlib.crc32(head.encode()), ""
    for _ in range(_CHECKSUM):
        number, rest = divmod(number, len(_ALPHABET))
        found = _ALPHABET[rest] + found
    return found


def digest(token: str) -> str:
    """What is stored of a token: its SHA-256, as hexadecimal digits."""
    return hashlib.sha256(token.encode()).hexdigest()
