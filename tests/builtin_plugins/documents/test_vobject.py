"""Calendars and contacts: events and people in words, without pictures and folds."""

from __future__ import annotations

from pathlib import Path

from builtin_plugins.documents.detection import detect_media_type
from builtin_plugins.documents.text import from_vobject

CALENDAR = (
    "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VTIMEZONE\r\nTZID:Europe/Oslo\r\nEND:VTIMEZONE\r\n"
    "BEGIN:VEVENT\r\nUID:1@x\r\nDTSTART;TZID=Europe/Oslo:20250601T090000\r\nDTEND:20250601T100000Z\r\n"
    "SUMMARY:Merger with Nordly\r\n s Corp\r\nDESCRIPTION:Bring the figures\\, please.\\nRoom 5.\r\n"
    'ATTENDEE;CN="Ada Berg";ROLE=CHAIR:MAILTO:ada@example.org\r\n'
    "BEGIN:VALARM\r\nDESCRIPTION:Reminder\r\nEND:VALARM\r\nEND:VEVENT\r\n"
    "BEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20250701\r\nSUMMARY:Holiday\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
)
CONTACTS = (
    "BEGIN:VCARD\r\nVERSION:2.1\r\nN:Berg;Ada;;;\r\nFN:Ada Berg\r\nitem1.TEL;TYPE=CELL:+47 123\r\n"
    "ADR;HOME:;;Main Street 5;Oslo;;0150;Norway\r\n"
    "NOTE;ENCODING=QUOTED-PRINTABLE;CHARSET=UTF-8:Gr=C3=BC=C3=9Fe aus =\r\nK=C3=B6ln\r\n"
    "PHOTO;ENCODING=BASE64;TYPE=JPEG:QUJD\r\n QUJD\r\nPHOTO;JPEG;BASE64:QUJD\r\n"
    "NOTE:data:image/png;base64,QUJD\r\n"
    "END:VCARD\r\nBEGIN:VCARD\r\nFN:Bob\r\nEND:VCARD\r\n"
)


def texts(folder: Path, source: str, media_type: str, encoding: str = "utf-8") -> list[str]:
    path = folder / "a"
    path.write_bytes(source.encode(encoding))
    assert detect_media_type(path, "a.txt") == media_type
    return [block.text for block in from_vobject.parse(path) if block.text]


def test_calendar(tmp_path: Path) -> None:
    """An event says when, what and who; a folded word is whole, and what only programs use is gone."""
    assert texts(tmp_path, CALENDAR, "text/calendar") == [
        "Start: 2025-06-01 09:00 Europe/Oslo\nEnd: 2025-06-01 10:00 UTC\nSummary: Merger with Nordlys Corp\n"
        "Description: Bring the figures, please.\nRoom 5.\nAttendee: Ada Berg ada@example.org",
        "Start: 2025-07-01\nSummary: Holiday",
    ]


def test_contacts(tmp_path: Path) -> None:
    """A person's lines are decoded, and no picture is read as text."""
    assert texts(tmp_path, CONTACTS, "text/vcard") == [
        "Name: Ada Berg\nPhone: +47 123\nAddress: Main Street 5, Oslo, 0150, Norway\nNote: Grüße aus Köln",
        "Name: Bob",
    ]


def test_contacts_of_old_programs(tmp_path: Path) -> None:
    """Their names are in parts alone, and their letters in the code page that they name."""
    source = (
        "BEGIN:VCARD\r\nVERSION:2.1\r\n"
        "N;CHARSET=ISO-8859-1;ENCODING=QUOTED-PRINTABLE:M=FCller;J=F6rg;;Dr.\r\nTEL;CELL:+49 123\r\n"
        "LABEL;WORK;ENCODING=QUOTED-PRINTABLE;CHARSET=no-such:K=F6nigsstra=DFe 1\r\nEND:VCARD\r\n"
        "BEGIN:VCARD\r\nN:Krüger;Ann\\;e\r\nEND:VCARD\r\n"
    )
    assert texts(tmp_path, source, "text/vcard", "cp1252") == [
        "Name: Dr. Jörg Müller\nPhone: +49 123\nLabel: Königsstraße 1",
        "Name: Ann;e Krüger",
    ]


def test_picture_of_any_size(tmp_path: Path) -> None:
    """A photo that is folded over very many lines costs no memory, and hides nothing after it."""
    photo = "PHOTO:" + "\r\n ".join(["QUJD" * 18] * 20_000)
    source = f"BEGIN:VCARD\r\n{photo}\r\nFN:Ada\r\nEND:VCARD\r\n"
    assert texts(tmp_path, source, "text/vcard") == ["Name: Ada"]


def test_long_quoted_note(tmp_path: Path) -> None:
    """A note that is too long hides nothing after it, however many of its lines are continued."""
    note = "NOTE;ENCODING=QUOTED-PRINTABLE:" + ("word " * 14 + "=\n") * 1_000
    source = f"BEGIN:VCARD\n{note}end\nFN:Ada\nEND:VCARD\n"
    assert texts(tmp_path, source, "text/vcard") == ["Name: Ada"]
