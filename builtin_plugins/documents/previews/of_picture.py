"""Pictures as they are, with their words as invisible text in its places, so that they can be marked."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from html import escape
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Final

from PIL import Image, ImageOps, ImageSequence

from builtin_plugins.documents.blocks import UnparsableDocument
from builtin_plugins.documents.images.from_image import count_pages
from builtin_plugins.documents.images.ocr import OPTIONS
from builtin_plugins.documents.previews.page import PreviewPage
from builtin_plugins.documents.previews.pictures import EmbeddedPictures

_MOST_BYTES: Final = 16 * 1024 * 1024
_SECONDS: Final = 15
_MOST_PAGES: Final = 10
_WIDEST: Final = 1800
"""Pixels of a page's longer side."""
_ORIENTATION: Final = 0x0112  # of EXIF: browsers turn such a picture, tesseract doesn't
_UPRIGHT: Final = (None, 1)
_WORD_LEVEL, _LINE_COLUMNS, _COLUMNS = "5", slice(2, 5), 12


def preview_tiff(path: Path) -> PreviewPage:
    """The first pages of a TIFF, which no browser shows. Raises `UnparsableDocument` for a broken one."""
    pictures, shown = EmbeddedPictures(_MOST_BYTES), []
    try:
        with Image.open(path) as image:
            for page in islice(ImageSequence.Iterator(image), _MOST_PAGES):
                shown.append(_tiff_page(ImageOps.exif_transpose(page), pictures))
            left_out = count_pages(path.read_bytes()) > _MOST_PAGES
    except (OSError, SyntaxError, ValueError) as error:
        raise UnparsableDocument("corrupt", f"tiff: {type(error).__name__}") from None
    if left_out:
        shown.append(f'<p class="note">The first {_MOST_PAGES} pages.</p>')
    return PreviewPage("".join(shown), placed=True)


def _tiff_page(page: Image.Image, pictures: EmbeddedPictures) -> str:
    page.thumbnail((_WIDEST, _WIDEST))
    drawn = BytesIO()
    page.convert("L" if page.mode in ("1", "L", "I;16") else "RGB").save(drawn, "PNG")
    data = drawn.getvalue()
    words = "".join(_words(data, *page.size))
    return f'<div class="picture">{pictures.element(data)}{words}</div>'


def preview(path: Path) -> PreviewPage:
    """The picture at `path`. Raises `UnparsableDocument` for one that is too large to be embedded."""
    data = path.read_bytes()
    with Image.open(path) as image:
        (width, height), turned = image.size, image.getexif().get(_ORIENTATION) not in _UPRIGHT
    address = EmbeddedPictures(_MOST_BYTES).address(data)
    if address is None:
        raise UnparsableDocument("too_large", f"picture of {len(data)} bytes")
    words = "" if turned else "".join(_words(data, width, height))
    html = f'<div class="picture"><img src="{address}" alt="">{words}</div>'
    return PreviewPage(html, placed=True)


def _words(picture: bytes, width: int, height: int) -> Iterator[str]:
    """The recognized words, each over its place; none without tesseract, or if it takes too long."""
    line = None
    for row in _recognized(picture):
        cells = row.split("\t")
        if len(cells) != _COLUMNS or cells[0] != _WORD_LEVEL or not cells[-1].strip():
            continue
        left, top, wide, high = (int(cell) for cell in cells[6:10])
        style = (
            f"left: {left / width:.3%}; top: {top / height:.3%}; "
            f"width: {wide / width:.3%}; height: {high / height:.3%};"
        )
        gap, line = ("<br>" if line not in (None, cells[_LINE_COLUMNS]) else " "), cells[_LINE_COLUMNS]
        yield f'{gap}<span style="{style}">{escape(cells[-1])}</span>'


def _recognized(picture: bytes) -> list[str]:
    program = shutil.which("tesseract")
    if program is None:
        return []
    try:
        done = subprocess.run(
            [program, "stdin", "stdout", "-l", OPTIONS.get().languages, "tsv"],
            input=picture,
            capture_output=True,
            timeout=_SECONDS,
            env={"OMP_THREAD_LIMIT": "1", "LANG": "C.UTF-8"},
            check=True,
        )
    except (subprocess.SubprocessError, OSError):  # the picture can be shown without its words
        return []
    return done.stdout.decode("utf-8", "replace").splitlines()
