"""What a page says to readers of a site: links, its canonical address, and whether to leave it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_MOST_LINKS: Final = 5_000


@dataclass(slots=True)
class PageSigns:
    """As written on the page; `base` is what its references are relative to, if it says so."""

    links: list[str] = field(default_factory=list)
    canonical: str | None = None
    base: str | None = None
    is_listed: bool = True
    is_followed: bool = True


class _Collector:
    """The tags come as lxml reads them."""

    def __init__(self) -> None:
        self.signs = PageSigns()

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        relation = attributes.get("rel", "").lower().split()
        place = attributes.get("href", "")
        if tag == "a" and place and "nofollow" not in relation and len(self.signs.links) < _MOST_LINKS:
            self.signs.links.append(place)
        elif tag == "link" and place and "canonical" in relation and self.signs.canonical is None:
            self.signs.canonical = place
        elif tag == "base" and place and self.signs.base is None:
            self.signs.base = place
        elif tag == "meta" and attributes.get("name", "").lower() == "robots":
            obey(attributes.get("content", ""), self.signs)

    def end(self, tag: str) -> None:
        """Nothing depends on it."""

    def data(self, text: str) -> None:
        """Nothing depends on it."""

    def close(self) -> PageSigns:
        return self.signs


def read_page(content: bytes, encoding: str | None) -> PageSigns:
    """The signs of an HTML page; none of what can't be read."""
    from lxml import etree  # many processes never read a page

    try:
        parser = etree.HTMLParser(target=_Collector(), no_network=True, encoding=encoding)
    except (LookupError, ValueError):  # no encoding that is known
        parser = etree.HTMLParser(target=_Collector(), no_network=True)
    try:
        parser.feed(content)
        signs: PageSigns = parser.close()
    except etree.XMLSyntaxError:  # nothing in it
        return PageSigns()
    return signs


def obey(directives: str, signs: PageSigns) -> None:
    """Note what `noindex`, `nofollow` or `none` ask for."""
    words = {word.strip() for word in directives.lower().split(",")}
    signs.is_listed = signs.is_listed and not words & {"noindex", "none"}
    signs.is_followed = signs.is_followed and not words & {"nofollow", "none"}
