"""Sitemaps (sitemaps.org): the addresses of pages, and of further sitemaps."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Final

_LONGEST_BYTES: Final = 64 * 1024 * 1024
_MOST: Final = 50_000
_GZIP: Final = b"\x1f\x8b"


class SitemapBroken(Exception):
    """It is no whole sitemap."""


@dataclass(slots=True)
class Sitemap:
    """What a sitemap names, as it is written there."""

    pages: list[str] = field(default_factory=list)
    sitemaps: list[str] = field(default_factory=list)


def read_sitemap(content: bytes) -> Sitemap:
    """A sitemap or an index of sitemaps, compressed or not. Raises SitemapBroken."""
    from lxml import etree  # many processes never read a sitemap

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(_expanded(content), parser)
    except etree.XMLSyntaxError:
        raise SitemapBroken("it is not well-formed") from None
    name = etree.QName(root).localname
    if name not in ("urlset", "sitemapindex"):
        raise SitemapBroken("it is no sitemap")
    places = [
        (place.text or "").strip()
        for entry in root.iterchildren("*")
        for place in entry.iterchildren("*")
        if etree.QName(place).localname == "loc"
    ]
    if len(places) > _MOST:
        raise SitemapBroken(f"it names more than {_MOST:,} addresses")
    return Sitemap(pages=places) if name == "urlset" else Sitemap(sitemaps=places)


def _expanded(content: bytes) -> bytes:
    if not content.startswith(_GZIP):
        return content
    unpacker = zlib.decompressobj(wbits=31)
    try:
        expanded = unpacker.decompress(content, _LONGEST_BYTES)
    except zlib.error:
        raise SitemapBroken("it can't be unpacked") from None
    if not unpacker.eof:
        raise SitemapBroken("it breaks off, or is too large")
    return expanded
