"""The format of a token: `plk_`, 40 random characters, and a checksum of 6.

The prefix lets secret scanners find a token that was published: `plk_[0-9A-Za-z]{46}`. The checksum tells one
from a similar word without a look-up: CRC-32 of everything before it, in base 62.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import string
import zlib
from collections.abc import Callable
from datetime import datetime

PREFIX = "plk_"
MakeToken = Callable[[datetime], str]

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM = 40  # 238 bits: storing a plain hash is safe
_CHECKSUM = 6
_LENGTH = len(PREFIX) + _RANDOM + _CHECKSUM


def new_token(_created_at: datetime) -> str:
    """A new, random token."""
    head = PREFIX + "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM))
    return head + checksum(head)


def derived_tokens(secret: str, account_id: int, key: str) -> MakeToken:
    """A function that makes the token of an account's request with this idempotency key.

    It depends on the time of creation, too: after a revocation, the same key makes another token.
    """

    def make(created_at: datetime) -> str:
        text = json.dumps([account_id, key, created_at.isoformat()])
        number, digits = int.from_bytes(hmac.digest(secret.encode(), text.encode(), "sha512")), ""
        for _ in range(_RANDOM):
            number, rest = divmod(number, len(_ALPHABET))
            digits += _ALPHABET[rest]
        return PREFIX + digits + checksum(PREFIX + digits)

    return make


def is_well_formed(token: str) -> bool:
    """Whether the checksum is right. If it isn't, the token is not one of ours, and no look-up is needed."""
    head = token[:-_CHECKSUM]
    return len(token) == _LENGTH and token.isascii() and token[-_CHECKSUM:] == checksum(head)


def checksum(head: str) -> str:
    """CRC-32 of `head` as six characters of base 62."""
    number, digits = zlib.crc32(head.encode()), ""
    for _ in range(_CHECKSUM):
        number, rest = divmod(number, len(_ALPHABET))
        digits = _ALPHABET[rest] + digits
    return digits


def digest(token: str) -> str:
    """What is stored of a token: its SHA-256, as hexadecimal digits."""
    return hashlib.sha256(token.encode()).hexdigest()
