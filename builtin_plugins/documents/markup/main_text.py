"""The main text of a web page: what is not its navigation, its sidebars or its footers.

Goes by the landmarks that a page names (`main`, `header`, `footer`, `aside`, or their roles and usual
classes), and by how much of a text are links.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, NamedTuple

from builtin_plugins.documents.blocks import Block
from builtin_plugins.documents.omissions import omit

Landmark = Literal["main", "article", "beside", "listing"]

_BY_TAG: Final[Mapping[str, Landmark]] = {
    "main": "main",
    "article": "article",
    "header": "beside",
    "footer": "beside",
    "aside": "beside",
}
_BY_ROLE: Final[Mapping[str, Landmark]] = {
    "main": "main",
    "article": "article",
    **dict.fromkeys(("banner", "contentinfo", "complementary", "search"), "beside"),
}
# Classes and ids of what surrounds a text, whatever its element: left out where it consists of links.
_LISTING: Final = re.compile(
    r"(?<![^\s_-])(?<!has-)(?<!with-)(?<!no-)(?:breadcrumbs?|catlinks|categories|footer|interlanguage|langlinks|lang|menu|nav|navbar|navbox|navigation"
    r"|pagination|pager|panel|portlet|related|share|sharing|sidebar|sitemap|social|tags?|toolbar)(?!\S)",
    re.IGNORECASE,
)
_LONGEST_CLASS: Final = 200
_BUFFERED_CHARS: Final = 2_000_000
"""What is looked at before anything is decided: a page with more text goes by its beginning."""
_LEAST_CHARS: Final = 200
"""What must be left to be taken for the text of a page."""
_LEAST_BETWEEN_LINKS: Final = 1_000
_LEAST_SHARE: Final = {"main": 0.3, "article": 0.6, "beside": 0.3}
_MOSTLY_LINKS: Final = 0.7
_PROSE_CHARS: Final = 80


class Piece(NamedTuple):
    """A block with the outermost landmark it is in, if any; whether it is a title of the page, which is kept;
    whether it is among what is named as a list of links; and how many of its characters are links.
    """

    block: Block
    landmark: Landmark | None
    is_title: bool
    is_listing: bool
    linked: int

    @property
    def prose(self) -> int:
        """Characters that are no links."""
        return max(0, len(self.block.text) - self.linked)

    @property
    def is_links(self) -> bool:
        """Whether it is little more than links."""
        return self.linked > _MOSTLY_LINKS * len(self.block.text)


def landmark_of(tag: str, attributes: Mapping[str, str]) -> Landmark | None:
    """What an element is to the page; None for most."""
    role = _BY_ROLE.get(attributes.get("role", ""))
    if role or tag in _BY_TAG:
        return role or _BY_TAG[tag]
    named = f"{attributes.get('class', '')[:_LONGEST_CLASS]} {attributes.get('id', '')[:_LONGEST_CLASS]}"
    return "listing" if len(named) > 1 and _LISTING.search(named) else None


def main_text(pieces: Iterable[Piece]) -> Iterator[Block]:
    """Yield the blocks of the main text; those beside it are counted as left out."""
    stream = iter(pieces)
    first, size = list[Piece](), 0
    for piece in stream:
        first.append(piece)
        size += len(piece.block.text)
        if size > _BUFFERED_CHARS:
            break
    landmark = _deciding_landmark(first)
    whole = [piece for piece in first if _is_kept(piece, landmark)]
    start, end = _without_links(whole) if landmark != "main" else (0, len(whole))
    main_pieces = [piece for at, piece in enumerate(whole) if start <= at < end or piece.is_title]
    omit("beside", len(first) - len(main_pieces))
    yield from (piece.block for piece in main_pieces)
    for piece in stream:
        if _is_kept(piece, landmark):
            yield piece.block
        else:
            omit("beside")


def _deciding_landmark(pieces: list[Piece]) -> Landmark | None:
    """The landmark that decides: what is in it is kept, or everything but what is `beside`; None if there is
    too little text in the one and outside the other.
    """
    prose = sum(piece.prose for piece in pieces)
    for landmark, least in _LEAST_SHARE.items():
        chars_inside = (
            piece.prose
            for piece in pieces
            if (piece.landmark != "beside" if landmark == "beside" else piece.landmark == landmark)
        )
        if sum(chars_inside) >= max(_LEAST_CHARS, least * prose):
            return landmark  # type: ignore[return-value]  # its keys are landmarks
    return None


def _is_kept(piece: Piece, landmark: Landmark | None) -> bool:
    if landmark is None or piece.is_title:
        return True
    if piece.is_listing and piece.is_links:
        return False
    return piece.landmark != "beside" if landmark == "beside" else piece.landmark == landmark


def _without_links(pieces: list[Piece]) -> tuple[int, int]:
    """Where the text begins and ends that has links above and below it; all of it without enough text."""
    prose = [at for at, piece in enumerate(pieces) if not (piece.is_links or piece.is_title)]
    if sum(pieces[at].prose for at in prose if pieces[at].prose >= _PROSE_CHARS) < _LEAST_BETWEEN_LINKS:
        return 0, len(pieces)
    return prose[0], prose[-1] + 1
