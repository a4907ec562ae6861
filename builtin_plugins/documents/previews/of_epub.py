"""Books as HTML: their chapters one after the other, with pictures."""

from __future__ import annotations

import posixpath
import re
import zipfile
from html import unescape
from pathlib import Path
from typing import Final

from builtin_plugins.documents.archives.archive import open_archive
from builtin_plugins.documents.markup.from_epub import chapter_pages, resolve_member
from builtin_plugins.documents.previews.page import PreviewPage
from builtin_plugins.documents.previews.pictures import EmbeddedPictures

_SOURCE: Final = re.compile(r"""(<img\b[^<>]{0,2000}?\ssrc\s*=\s*)(["'])([^"'<>]{1,1000})\2""", re.IGNORECASE)
_BODY: Final = re.compile(r"<body\b", re.IGNORECASE)
_MOST_CHARS: Final = 12_000_000
_MOST_PICTURE_BYTES: Final = 8 * 1024 * 1024


def preview(path: Path) -> PreviewPage:
    """The chapters of a book, up to 12 million characters. Raises `UnparsableDocument` as its parser does."""
    pictures, bodies, room = EmbeddedPictures(), list[str](), _MOST_CHARS
    with open_archive(path, checked=()) as archive:
        for name, page in chapter_pages(archive):
            room -= len(page)
            if room < 0:
                bodies.append('<p class="note">The rest of the book is not shown here.</p>')
                break
            bodies.append(_with_pictures(_body(page), archive, posixpath.dirname(name), pictures))
    return PreviewPage(f'<div class="text">{"<hr class=page>".join(bodies)}</div>')


def _with_pictures(page: str, archive: zipfile.ZipFile, folder: str, pictures: EmbeddedPictures) -> str:
    def source(match: re.Match[str]) -> str:
        info = archive.NameToInfo.get(resolve_member(folder, unescape(match[3])))
        is_small = info is not None and info.file_size <= _MOST_PICTURE_BYTES
        address = pictures.address(archive.read(info)) if info is not None and is_small else None
        return f"{match[1]}{match[2]}{address or ''}{match[2]}"

    return _SOURCE.sub(source, page)


def _body(page: str) -> str:
    """A chapter without its head."""
    body = _BODY.search(page)
    return page if body is None else page[body.start() :]
