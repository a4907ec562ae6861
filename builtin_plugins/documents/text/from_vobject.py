"""Calendars (iCalendar, RFC 5545) and contacts (vCard 2.1 to 4.0): an event or a person is a block."""

from __future__ import annotations

import quopri
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from builtin_plugins.documents.blocks import Block, UnparsableDocument
from builtin_plugins.documents.text.encoding import decoded_as, read_lines

_MAX_CHARS: Final = 32_768  # of a property; a longer one is a picture
_WHOLE: Final = frozenset({"VEVENT", "VTODO", "VJOURNAL", "VCARD"})
_LEFT_OUT: Final = frozenset({"VTIMEZONE", "VALARM", "VFREEBUSY"})
# Only for programs.
_NOISE: Final = frozenset(
    {
        *("UID", "DTSTAMP", "PRODID", "VERSION", "CALSCALE", "METHOD", "SEQUENCE", "CREATED", "TRANSP"),
        *("CLASS", "LAST-MODIFIED", "REV", "PHOTO", "LOGO", "SOUND", "KEY", "PRIORITY"),
    }
)
_NAME_LABEL: Final = "Name: "
_MAILTO: Final = re.compile("^mailto:", re.IGNORECASE)
_LABELS: Final = {
    "DTSTART": "Start",
    "DTEND": "End",
    "FN": "Name",
    "N": "Name",
    "TEL": "Phone",
    "ADR": "Address",
}
_STRUCTURED: Final = frozenset({"ADR", "ORG"})
_PARTS: Final = "N"  # of a name; FN repeats it for people, but old programs omit FN
_IN_WORDS: Final = (3, 1, 2, 0, 4)
"""The order of the parts: title, given and other names, family name, suffix."""
_PART: Final = re.compile(r"(?<!\\);")
_MOMENT: Final = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d(Z?))?")
_ESCAPED: Final = re.compile(r"\\([\\,;nN:])")
_PARAMETER: Final = re.compile(r';([\w-]{1,40})(?:=("[^"]{0,1000}"|[^;:"]{0,1000}))?')
_NAME: Final = re.compile(r"(?:[\w-]{1,40}\.)?([\w-]{1,60})")


class _Property(NamedTuple):
    name: str
    parameters: dict[str, str]
    value: str


def parse(path: Path) -> Iterator[Block]:
    """Yield a block per event, task or person, a line per property; no pictures or data for programs only.

    Raises `UnparsableDocument`, `corrupt`, for a file in which nothing begins.
    """
    lines: list[str] = []
    name = ""
    left_out, begins = 0, False
    for entry in filter(None, map(_read, _unfolded(path))):
        kind = entry.value.strip().upper()
        begins = begins or entry.name == "BEGIN"
        if entry.name in ("BEGIN", "END") and kind in _LEFT_OUT:
            left_out += 1 if entry.name == "BEGIN" else -1
        elif entry.name in ("BEGIN", "END"):
            if kind in _WHOLE:
                yield _block(name, lines)
                name, lines = "", []
        elif entry.name == _PARTS:
            name = _line(entry)
        elif left_out <= 0 and entry.name not in _NOISE and not entry.name.startswith("X-"):
            lines += filter(None, [_line(entry)])
    if not begins:
        raise UnparsableDocument("corrupt", "neither a calendar nor contacts")
    yield _block(name, lines)


def _block(name: str, lines: list[str]) -> Block:
    has_name = not name or any(line.startswith(_NAME_LABEL) for line in lines)
    return Block("\n".join(lines if has_name else [name, *lines]))


def _unfolded(path: Path) -> Iterator[str]:
    """The unfolded lines; what is too long is cut off."""
    line = last = ""
    for part in chain(read_lines(path, _MAX_CHARS), [""]):
        quoted = last.endswith("=") and "QUOTED-PRINTABLE" in line[:200].upper()
        if part[:1] in (" ", "\t") or quoted:
            if len(line) <= _MAX_CHARS:
                line = f"{line[:-1]}{part}" if quoted else f"{line}{part[1:]}"
        else:
            yield line
            line = part
        last = part


def _read(line: str) -> _Property | None:
    name = _NAME.match(line)
    if name is None or len(line) > _MAX_CHARS:
        return None
    at, parameters = name.end(), dict[str, str]()
    while parameter := _PARAMETER.match(line, at):
        parameters[parameter[1].upper()] = (parameter[2] or parameter[1]).strip('"')
        at = parameter.end()
    return _Property(name[1].upper(), parameters, line[at + 1 :]) if line[at : at + 1] == ":" else None


def _line(entry: _Property) -> str:
    encoding = entry.parameters.get("ENCODING", "").upper()
    if encoding in ("B", "BASE64") or "BASE64" in entry.parameters or entry.value.startswith("data:"):
        return ""
    text = entry.value
    if encoding == "QUOTED-PRINTABLE" or "QUOTED-PRINTABLE" in entry.parameters:
        text = decoded_as(entry.parameters.get("CHARSET", "utf-8"), quopri.decodestring(text.encode()))
    if entry.name in _STRUCTURED:
        text = ", ".join(part for part in _PART.split(text) if part.strip())
    elif entry.name == _PARTS:
        parts = [*map(str.strip, _PART.split(text)), *[""] * len(_IN_WORDS)]
        text = " ".join(parts[at] for at in _IN_WORDS if parts[at])
    text = _ESCAPED.sub(lambda escape: "\n" if escape[1] in "nN" else escape[1], text).strip()
    if moment := _MOMENT.fullmatch(text):
        text = _moment(moment, entry.parameters.get("TZID", ""))
    if entry.name in ("ATTENDEE", "ORGANIZER"):
        text = " ".join(filter(None, [entry.parameters.get("CN", ""), _MAILTO.sub("", text)]))
    return f"{_LABELS.get(entry.name, entry.name.capitalize())}: {text}" if text else ""


def _moment(match: re.Match[str], zone: str) -> str:
    """A day, or a time with its zone, as people write it."""
    year, month, day, hour, minute, utc = match.groups()
    date = f"{year}-{month}-{day}"
    return " ".join(filter(None, [date, hour and f"{hour}:{minute}", "UTC" if utc else zone]))
