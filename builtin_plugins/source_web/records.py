"""What a listing leaves for the next one: what each page was like, so that it need not be sent again."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

_LONGEST_BYTES: Final = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PageRecord:
    """A page as it was last sent. `etag` and `modified` are the server's, `digest` is of the content.

    `links` and `canonical` are addresses of the site. `size` is in bytes.
    """

    digest: str
    size: int
    media_type: str
    etag: str | None = None
    modified: str | None = None
    links: tuple[str, ...] = ()
    canonical: str | None = None
    is_listed: bool = True


def as_cursor(records: Mapping[str, PageRecord]) -> str:
    """The records as a text, which `from_cursor` reads. Links are numbers of addresses."""
    numbers: dict[str, int] = {}
    rows = {
        url: asdict(record) | {"links": [numbers.setdefault(link, len(numbers)) for link in record.links]}
        for url, record in records.items()
    }
    text = json.dumps([list(numbers), rows], separators=(",", ":")).encode()
    return base64.b85encode(zlib.compress(text, 6)).decode()


def from_cursor(cursor: str) -> dict[str, PageRecord] | None:
    """The records; None if the cursor is of another version."""
    try:
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(base64.b85decode(cursor), _LONGEST_BYTES)
        addresses, rows = json.loads(text)
        return {
            url: PageRecord(**{**row, "links": tuple(addresses[number] for number in row["links"])})
            for url, row in rows.items()
        }
    except (ValueError, TypeError, KeyError, IndexError, zlib.error):
        return None
