"""What an S3 server answers: pages of a listing, and errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import unquote_plus

_NAMESPACE: Final = re.compile(r"^\{[^}]*\}")
_LONGEST_CODE: Final = 64
_LONGEST_SIZE: Final = 18


class PageBroken(Exception):
    """The answer is no whole page."""


@dataclass(frozen=True, slots=True)
class BucketObject:
    """An object in a listing. `size` is in bytes; `version` is None unless versions were listed."""

    key: str
    etag: str
    size: int
    modified: datetime | None
    version: str | None


@dataclass(frozen=True, slots=True)
class BucketPage:
    """The current objects of a page, and where the next one begins; None after the last."""

    objects: list[BucketObject]
    next_token: str | None
    next_version: tuple[str, str] | None


def read_page(content: bytes, *, versions: bool) -> BucketPage:
    """A page of objects or of versions. Raises PageBroken."""
    root = _root(content)
    name = "ListVersionsResult" if versions else "ListBucketResult"
    if root is None or _name(root) != name:
        raise PageBroken("the answer does not list objects")
    is_encoded = _text(root, "EncodingType") == "url"
    entries = _children(root, "Version" if versions else "Contents")
    objects = [
        _object(entry, is_encoded=is_encoded)
        for entry in entries
        if not versions or _text(entry, "IsLatest") == "true"
    ]
    truncated = _text(root, "IsTruncated")
    if truncated not in ("true", "false"):
        raise PageBroken("the list does not say whether it goes on")
    if truncated == "false":
        return BucketPage(objects, None, None)
    token = _text(root, "NextContinuationToken") or None
    key = _decoded(_text(root, "NextKeyMarker"), is_encoded=is_encoded)
    if not (key if versions else token):
        raise PageBroken("the list says that it goes on, but not where")
    return BucketPage(objects, token, (key, _text(root, "NextVersionIdMarker")) if versions else None)


def read_code(content: bytes) -> str:
    """The code of an error, such as ``NoSuchBucket``; empty if there is none."""
    root = _root(content)
    return "" if root is None or _name(root) != "Error" else _text(root, "Code")[:_LONGEST_CODE]


def _root(content: bytes) -> Any:
    from lxml import etree  # many processes never read a listing

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        return etree.fromstring(content, parser)
    except etree.XMLSyntaxError:
        return None


def _object(entry: Any, *, is_encoded: bool) -> BucketObject:
    key, size = _decoded(_text(entry, "Key"), is_encoded=is_encoded), _text(entry, "Size")
    if not key or not (size.isascii() and size.isdecimal() and len(size) <= _LONGEST_SIZE):
        raise PageBroken("the list holds an object without a name or a size")
    return BucketObject(
        key=key,
        etag=_text(entry, "ETag").strip('"'),
        size=int(size),
        modified=_moment(_text(entry, "LastModified")),
        version=_text(entry, "VersionId") or None,
    )


def _decoded(text: str, *, is_encoded: bool) -> str:
    return unquote_plus(text) if is_encoded else text


def _children(parent: Any, name: str) -> Iterator[Any]:
    return (child for child in parent.iterchildren("*") if _name(child) == name)


def _text(parent: Any, name: str) -> str:
    return next((child.text or "" for child in _children(parent, name)), "")


def _name(element: Any) -> str:
    return _NAMESPACE.sub("", str(element.tag))


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
