"""Word documents as HTML: headings, lists, tables, pictures and notes, as mammoth converts them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import mammoth
from mammoth import transforms

from builtin_plugins.documents.archives.archive import open_archive
from builtin_plugins.documents.previews.page import PreviewPage
from builtin_plugins.documents.previews.pictures import EmbeddedPictures

_SIDES: Final = {"center": "center", "right": "right", "end": "right", "both": "justify"}
_STYLES: Final = {
    "Title": "h1.title",
    "Subtitle": "p.subtitle",
    "Quote": "blockquote > p",
    "Intense Quote": "blockquote > p",
    **{f"Heading {level}": f"h{level}" for level in range(1, 7)},
    **{f"heading {level}": f"h{level}" for level in range(1, 7)},
    "": "p",
}


def preview(path: Path) -> PreviewPage:
    """The body of a document. Raises `UnparsableDocument` for a bomb, a password or a broken package."""
    pictures = EmbeddedPictures()

    def picture(image: Any) -> Mapping[str, str]:
        try:
            with image.open() as file:
                return {"src": pictures.address(file.read()) or ""}
        except KeyError:  # the file isn't in the package
            return {"src": ""}

    with open_archive(path), path.open("rb") as file:
        conversion = mammoth.convert_to_html(
            file,
            style_map=_style_map(),
            transform_document=transforms.paragraph(_aligned),
            convert_image=mammoth.images.img_element(picture),
            include_embedded_style_map=False,  # a document doesn't choose its elements
        )
    return PreviewPage(f'<div class="text">{conversion.value}</div>')


def _aligned(paragraph: Any) -> Any:
    """The paragraph with a style that tells its alignment, too: mammoth shows none."""
    side = _SIDES.get(paragraph.alignment)
    style = (paragraph.style_name or "") if paragraph.style_name in _STYLES else ""
    if side is None or paragraph.numbering is not None:
        return paragraph
    return paragraph.copy(style_name=f"{style} to {side}")


def _style_map() -> str:
    rules = ["u => u", "p[style-name='footnote text'] => p.note", "br[type='page'] => hr.page"]
    for name, element in _STYLES.items():
        if name:
            rules.append(f"p[style-name='{name}'] => {element}:fresh")
        rules += (
            f"p[style-name='{name} to {side}'] => {element}.{side}:fresh"
            for side in dict.fromkeys(_SIDES.values())
        )
    return "\n".join(rules)
