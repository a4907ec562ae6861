"""What a page says about itself in its head: title, author, dates, language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lxml import etree

from builtin_plugins.documents.properties import PropertyName, listed, note_property

_META: Final[Mapping[str, PropertyName]] = {
    "author": "author",
    "dc.creator": "author",
    "dcterms.creator": "author",
    "article:published_time": "created",
    "dcterms.created": "created",
    "dc.date": "created",
    "date": "created",
    "article:modified_time": "modified",
    "dcterms.modified": "modified",
    "last-modified": "modified",
    "dc.subject": "subject",
    "dcterms.subject": "subject",
}
_KEYWORDS: Final = "keywords"


class _Head:
    """Collects the head of a page; the tags come as lxml reads them."""

    def __init__(self) -> None:
        self._title: list[str] = []
        self._is_title = False

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "html":
            note_property("language", attributes.get("lang"))
        elif tag == "meta":
            self._meta(attributes)
        self._is_title = tag == "title" and not self._title

    def end(self, tag: str) -> None:
        self._is_title = False

    def data(self, text: str) -> None:
        if self._is_title:
            self._title.append(text)

    def close(self) -> str:
        return "".join(self._title)

    @staticmethod
    def _meta(attributes: Mapping[str, str]) -> None:
        named = attributes.get("name") or attributes.get("property") or attributes.get("http-equiv") or ""
        content, name = attributes.get("content"), named.strip().lower()
        if name == _KEYWORDS:
            note_property("keywords", *listed(content))
        elif name in _META:
            note_property(_META[name], content)


def note_page_properties(beginning: str) -> None:
    """Note what the beginning of a page says about it."""
    head = beginning[: (beginning.lower().find("</head>") + 1) or None]
    parser = etree.HTMLParser(target=_Head(), no_network=True)
    try:
        parser.feed(head)
        note_property("title", parser.close())
    except etree.XMLSyntaxError:  # nothing in it
        return
