"""Values in Word's and PowerPoint's XML, and what Word shows without storing it as text: characters of symbol
fonts, and the choices in old form fields (ECMA-376-1, 17.3.3.30 and 17.16).
"""

from __future__ import annotations

from itertools import count
from typing import Final

from lxml import etree

_OFF: Final = ("0", "false", "off")
_GREEK: Final = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"
_SIGNS: Final = "ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑"
_WINGDINGS: Final = b"(*JLlnox\xa7\xa8\xdf\xe0\xe1\xe2\xe8\xf0\xf3\xfb\xfc\xfd\xfe"
_FONTS: Final[dict[str, dict[int, str]]] = {
    "Symbol": {code: chr(code) for code in range(0x20, 0x41)}
    | dict(zip(b"\"$'*-@", "∀∃∋∗−≅", strict=True))
    | dict(zip(count(0x41), _GREEK, strict=False))
    | dict(zip(count(0xA1), _SIGNS, strict=False)),
    "Wingdings": dict(zip(_WINGDINGS, "☎✉☺☹●■☐☒▪☐←→↑↓→⇨⇔✗✓☒☑", strict=True)),
    "Wingdings 2": dict(zip(b"OPQRST\xa3", "✗✓☒☑☒☒☐", strict=True)),
}
"""Characters by font and code, as far as documents use them for their meaning."""


def value_of(element: etree._Element) -> str:
    """The value of an element that is a property."""
    return next((value for name, value in element.attrib.items() if str(name).endswith("}val")), "")


def is_on(element: etree._Element) -> bool:
    """Whether a property that can be switched is on; without a value, it is."""
    return value_of(element) not in _OFF


def symbol(element: etree._Element) -> str:
    """The character of a `sym`, empty if it only decorates."""
    values = {str(name).rpartition("}")[2]: str(value) for name, value in element.items()}
    code = values.get("char", "")
    try:
        return _FONTS.get(values.get("font", ""), {}).get(int(code, 16) & 0xFF, "")
    except ValueError:
        return ""


def ticked(box: etree._Element) -> str:
    """The box of a form, ticked or not."""
    states = [is_on(state) for kind in ("checked", "default") for state in box.iterfind(f"{{*}}{kind}")]
    return "☒" if any(states[:1]) else "☐"


def chosen(box: etree._Element) -> str:
    """What is chosen in a drop-down list of a form; nothing chosen is its first entry."""
    entries = [value_of(entry) for entry in box.iterfind("{*}listEntry")]
    places = [value_of(place) for kind in ("result", "default") for place in box.iterfind(f"{{*}}{kind}")]
    place = int(places[0][:9]) if places and places[0].isdecimal() else 0
    return entries[place] if place < len(entries) else ""
