"""What a WebDAV server says of a folder (RFC 4918, section 13), read as it arrives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

_DAV: Final = "{DAV:}"
_FILE_ID: Final = "{http://owncloud.org/ns}fileid"
_LONGEST: Final = 1000
"""Characters of a value that are kept."""

PROPFIND: Final = (
    b'<?xml version="1.0" encoding="utf-8"?>'
    b'<d:propfind xmlns:d="DAV:" xmlns:oc="http://owncloud.org/ns"><d:prop>'
    b"<d:resourcetype/><d:getetag/><d:getcontentlength/><d:getlastmodified/><d:getcontenttype/><oc:fileid/>"
    b"</d:prop></d:propfind>"
)


class ListingBroken(Exception):
    """The answer is no whole listing."""


@dataclass(frozen=True, slots=True)
class DavMember:
    """A file or folder as the server names it; `href` is as it was sent. `file_id` is Nextcloud's."""

    href: str
    is_folder: bool
    etag: str | None
    size: int | None
    modified: datetime | None
    media_type: str | None
    file_id: str | None


class MemberReader:
    """Reads the members from pieces of an answer, without keeping it."""

    def __init__(self) -> None:
        from lxml import etree  # many processes never read a listing

        self._broken = etree.XMLSyntaxError
        self._parser = etree.XMLPullParser(
            events=("end",), resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
        )
        self._ended = False

    def feed(self, piece: bytes) -> Iterator[DavMember]:
        """The members whose description ends in this piece. Raises ListingBroken."""
        try:
            self._parser.feed(piece)
            yield from self._members()
        except self._broken as error:
            raise ListingBroken(f"its listing is not well-formed: {error.msg}") from None

    def close(self) -> None:
        """The answer has ended. Raises ListingBroken if its listing has not."""
        if not self._ended:
            raise ListingBroken("its listing breaks off")

    def _members(self) -> Iterator[DavMember]:
        for _, element in self._parser.read_events():
            if element.tag == f"{_DAV}multistatus":
                self._ended = True
            elif element.tag == f"{_DAV}response":
                member = _member(element)
                if member is not None:
                    yield member
                element.clear(keep_tail=False)
                while element.getprevious() is not None:
                    del element.getparent()[0]


def _member(response: Any) -> DavMember | None:
    """The member; None if it was deleted meanwhile. Raises ListingBroken if the server gave up listing."""
    href = _text(response, f"{_DAV}href")
    status = _status(response.findtext(f"{_DAV}status"))
    if status == 507:
        raise ListingBroken("it lists only a part of a folder, as that holds too much")
    propstats = [one for one in response.findall(f"{_DAV}propstat") if _is_good(one)]
    if not href or status >= 400 or not propstats:
        return None
    properties = propstats[0].find(f"{_DAV}prop")
    if properties is None:
        return None
    return DavMember(
        href=href,
        is_folder=properties.find(f"{_DAV}resourcetype/{_DAV}collection") is not None,
        etag=_text(properties, f"{_DAV}getetag"),
        size=_number(_text(properties, f"{_DAV}getcontentlength")),
        modified=_moment(_text(properties, f"{_DAV}getlastmodified")),
        media_type=_text(properties, f"{_DAV}getcontenttype"),
        file_id=_text(properties, _FILE_ID),
    )


def _is_good(propstat: Any) -> bool:
    return _status(propstat.findtext(f"{_DAV}status")) in (0, 200)


def _status(line: str | None) -> int:
    """The code in a line such as ``HTTP/1.1 200 OK``; 0 without one."""
    parts = (line or "").split()
    return int(parts[1]) if len(parts) > 1 and parts[1].isdecimal() else 0


def _text(parent: Any, tag: str) -> str | None:
    return (parent.findtext(tag) or "").strip()[:_LONGEST] or None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 19 else None


def _moment(text: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text) if text else None
    except (ValueError, TypeError):
        return None
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment
