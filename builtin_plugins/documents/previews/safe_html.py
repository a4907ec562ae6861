"""HTML of unknown origin, reduced to what shows text, tables and embedded pictures."""

from __future__ import annotations

import re
from typing import Final

import nh3

_TAGS: Final = frozenset(
    {
        *("h1", "h2", "h3", "h4", "h5", "h6", "p", "div", "section", "article", "main", "header", "footer"),
        *(
            "aside",
            "nav",
            "blockquote",
            "pre",
            "address",
            "figure",
            "figcaption",
            "hr",
            "br",
            "wbr",
            "center",
        ),
        *("ul", "ol", "li", "dl", "dt", "dd", "details", "summary"),
        *("table", "caption", "colgroup", "col", "thead", "tbody", "tfoot", "tr", "th", "td"),
        *(
            "a",
            "abbr",
            "b",
            "strong",
            "i",
            "em",
            "u",
            "s",
            "del",
            "ins",
            "small",
            "big",
            "sub",
            "sup",
            "span",
        ),
        *("font", "code", "kbd", "samp", "var", "q", "cite", "dfn", "time", "tt", "bdi", "bdo", "img"),
        *("ruby", "rt", "rp"),
    }
)
_WITHOUT_CONTENT: Final = {
    *("script", "style", "template", "noscript", "iframe", "object", "title", "svg"),
    *("button", "select", "textarea", "audio", "video", "canvas"),
}
_SIZES: Final = {"width", "height", "align", "valign", "bgcolor"}
_ATTRIBUTES: Final = {
    "*": {"style", "class", "dir", "lang"},
    "table": {"border", "cellpadding", "cellspacing", *_SIZES},
    "tr": _SIZES,
    "td": {"colspan", "rowspan", "nowrap", *_SIZES},
    "th": {"colspan", "rowspan", "scope", "nowrap", *_SIZES},
    "col": {"span", *_SIZES},
    "colgroup": {"span"},
    "img": {"src", "alt", *_SIZES},
    "font": {"color", "face", "size"},
    "ol": {"start", "type", "reversed"},
    "li": {"value"},
    "p": {"align"},
    "div": {"align"},
    "details": {"open"},
}
_LOOKS: Final = frozenset(
    {
        *("color", "background-color", "font-family", "font-size", "font-style", "font-weight"),
        *("text-align", "text-decoration", "text-indent", "text-transform", "line-height", "letter-spacing"),
        *("vertical-align", "white-space", "direction", "list-style-type", "width", "height", "max-width"),
        *(
            "min-width",
            "border",
            "border-top",
            "border-right",
            "border-bottom",
            "border-left",
            "border-color",
        ),
        *("border-style", "border-width", "border-collapse", "border-spacing", "border-radius", "padding"),
        *("padding-top", "padding-right", "padding-bottom", "padding-left", "margin", "margin-top"),
        *("margin-right", "margin-bottom", "margin-left", "display", "float", "clear"),
    }
)
_PLACES: Final = frozenset(
    {"position", "left", "top", "overflow", "aspect-ratio", "transform", "justify-content"}
)
_PICTURE: Final = re.compile(r"data:image/(?:png|jpeg|gif|webp|bmp);base64,[A-Za-z0-9+/=]+")


def safe_html(html: str, *, placed: bool = False) -> str:
    """The elements that show something, without scripts, forms, addresses and all that loads anything.

    Pictures stay if their data is embedded. With `placed`, styles may say where an element is: only for what
    was made here.
    """
    return nh3.clean(
        html,
        tags=set(_TAGS),
        clean_content_tags=_WITHOUT_CONTENT,
        attributes=_ATTRIBUTES,
        attribute_filter=_attribute,
        url_schemes={"data"},
        link_rel=None,
        filter_style_properties=set(_LOOKS | _PLACES if placed else _LOOKS),
    )


def _attribute(tag: str, name: str, value: str) -> str | None:
    return value if name != "src" or _PICTURE.fullmatch(value) else None
