"""Outlook messages: how their text may be stored, and the messages inside them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from builtin_plugins.documents.mail import from_eml, from_msg
from builtin_plugins.documents.office import from_xlsx
from tests.builtin_plugins.documents import sample_documents as made

CLASS, SUBJECT, SENDER, ADDRESS, TEXT, HTML, RTF = 0x001A, 0x0037, 0x0C1A, 0x0C1F, 0x1000, 0x1013, 0x1009
# The examples of [MS-OXRTFCP], 3.1.
HELLO = bytes.fromhex(
    "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0"
)
REPEATED = bytes.fromhex("1a0000001c0000004c5a4675e2d44b51410004205758595a0d6e7d010eb0")


def written(folder: Path, tree: made.Tree) -> Path:
    path = folder / "message.msg"
    path.write_bytes(made.compound_file(tree))
    return path


def read(folder: Path, fields: dict[int, str | bytes], code_page: int | None = None) -> list[str]:
    path = written(folder, made.outlook_properties(fields, {}, code_page))
    return [text for block in from_msg.parse(path) if (text := block.text.strip())]


def plain(rtf: bytes) -> bytes:
    return struct.pack("<II4sI", len(rtf) + 12, len(rtf), b"MELA", 0) + rtf


@pytest.mark.parametrize(
    ("rtf", "expected"),
    [
        (HELLO, "hello world"),
        (REPEATED, "WXYZWXYZWXYZWXYZWXYZ"),
        (plain(rb"{\rtf1\ansi\ansicpg1252 Die Gr\'f6\'dfe ist 4200 Liter.}"), "Die Größe ist 4200 Liter."),
    ],
)
def test_text_that_is_only_rtf(tmp_path: Path, rtf: bytes, expected: str) -> None:
    assert read(tmp_path, {SUBJECT: "Tank", RTF: rtf}) == ["Subject: Tank", expected]
    assert read(tmp_path, {SUBJECT: "Tank", TEXT: "Plain.", RTF: rtf})[1:] == ["Plain."]
    assert read(tmp_path, {SUBJECT: "Tank", RTF: rtf[:10]}) == ["Subject: Tank"]


def test_damaged_rtf(tmp_path: Path) -> None:
    """The rest of the message is read, and the lost text counted."""
    tree = made.outlook_properties({SUBJECT: "Tank", RTF: plain(rb"{\rtf1 cut {off")}, {"plan.txt": b"Plan."})
    blocks = list(from_msg.parse(written(tmp_path, tree)))
    assert [block.text.strip() for block in blocks] == ["Subject: Tank", "", "Attachments: plan.txt"]
    assert [block.damaged for block in blocks] == [False, True, False]


def test_text_that_is_only_html(tmp_path: Path) -> None:
    html = "<p>Die Fähre fährt um <b>7:45</b>.</p><p>Täglich.</p>".encode().ljust(4096)
    assert read(tmp_path, {SUBJECT: "Fähre", HTML: html, RTF: HELLO})[1:] == [
        "Die Fähre fährt um 7:45.",
        "Täglich.",
    ]


@pytest.mark.parametrize(
    ("code_page", "subject"), [(932, "会議"), (1252, "Grüße"), (1251, "Отчёт"), (65001, "Grüße 会議")]
)
def test_text_in_a_declared_code_page(tmp_path: Path, code_page: int, subject: str) -> None:
    """A message that isn't Unicode names its code page, which decides even for a short subject."""
    assert read(tmp_path, {SUBJECT: subject}, code_page) == [f"Subject: {subject}"]


def test_sender_without_an_internet_address(tmp_path: Path) -> None:
    assert read(tmp_path, {SENDER: "Ada", ADDRESS: "ada@example.org"}) == ["From: Ada <ada@example.org>"]
    assert read(tmp_path, {SENDER: "Ada", ADDRESS: "/O=NORDLYS/CN=ADA"}) == ["From: Ada"]


def test_messages_inside_a_message(tmp_path: Path) -> None:
    """A forwarded message is named by its subject and extracted as an e-mail, with its own attachments."""
    innermost = made.outlook_properties({TEXT: "The word is gentian."}, {})
    inner = made.outlook_properties(
        {SUBJECT: "Ältere Nachricht", SENDER: "Jürgen Groß", ADDRESS: "jg@example.org", TEXT: "Liegt bei."},
        {"plan.txt": b"The plan.", "x": innermost},
    )
    path = written(tmp_path, made.outlook_properties({TEXT: "See below."}, {"y": inner}))
    assert [block.text for block in from_msg.parse(path)][1:] == [
        "See below.",
        "Attachments: Ältere Nachricht.eml",
    ]
    ((name, content, _),) = from_msg.extract(path)
    assert name == "Ältere Nachricht.eml" and isinstance(content, bytes)
    mail = tmp_path / name
    mail.write_bytes(content)
    headers, text, attachments = (block.text.strip() for block in from_eml.parse(mail))
    assert headers == "Subject: Ältere Nachricht\nFrom: Jürgen Groß <jg@example.org>"
    assert (text, attachments) == ("Liegt bei.", "Attachments: plan.txt, message.eml")
    files = {extracted.name: extracted.content for extracted in from_eml.extract(mail)}
    assert b"The plan." in files["plan.txt"] and b"gentian" in files["message.eml"]


def test_very_many_messages_inside_each_other(tmp_path: Path) -> None:
    """Only what is extracted is encoded: each level is a third larger, and no file may fill the memory."""
    tree = made.outlook_properties({TEXT: "The last."}, {"chart.bin": bytes(50_000)})
    for number in range(12):
        tree = made.outlook_properties({SUBJECT: f"Forward {number}", TEXT: "Please read."}, {"x": tree})
    ((name, content, _),) = from_msg.extract(written(tmp_path, tree))
    assert name == "Forward 10.eml" and isinstance(content, bytes) and len(content) < 50_000
    mail = tmp_path / "mail.eml"
    for expected in ("Forward 9.eml", "Forward 8.eml"):
        mail.write_bytes(content)
        *_, text, attachments = (block.text.strip() for block in from_eml.parse(mail))
        assert (text, attachments) == ("Please read.", f"Attachments: {expected}")
        ((_, inner, _),) = from_eml.extract(mail)
        content = inner if isinstance(inner, bytes) else b"".join(inner)
    assert content == b""


def test_signed_message(tmp_path: Path) -> None:
    signed = (
        b'Content-Type: multipart/signed; boundary=s; protocol="application/pkcs7-signature"\n\n'
        b"--s\nContent-Type: multipart/mixed; boundary=m\n\n"
        b"--m\nContent-Type: text/plain\n\nThe berth is taken.\n"
        b'--m\nContent-Type: text/csv; name="berths.csv"\nContent-Disposition: attachment\n\na,b\n--m--\n'
        b'--s\nContent-Type: application/pkcs7-signature; name="smime.p7s"\n\nx\n--s--\n'
    )
    fields = {CLASS: "IPM.Note.SMIME.MultipartSigned", SUBJECT: "Berth"}
    path = written(tmp_path, made.outlook_properties(fields, {"smime.p7m": signed}))
    assert [text for block in from_msg.parse(path) if (text := block.text.strip())] == [
        "Subject: Berth",
        "The berth is taken.",
        "Attachments: berths.csv",
    ]
    assert [extracted.name for extracted in from_msg.extract(path)] == ["berths.csv"]


def test_embedded_objects(tmp_path: Path) -> None:
    """A file inserted as an object is a document, too; a picture of another program is only named."""
    sheet = made.workbook(tmp_path / "sheet", {"Berths": [["Harbour", "Berths"]]}).read_bytes()
    plan = b"The plan."
    packed = b"\2\0plan.txt\0C:\\plan.txt\0\0\0\3\0" + struct.pack("<I", 3) + b"C:\0"
    packed += struct.pack("<I", len(plan)) + plan
    objects: dict[str, bytes | made.Tree] = {
        "Worksheet": {"\1CompObj": b"x", "Package": sheet},
        "Object": {"\1Ole10Native": struct.pack("<I", len(packed)) + packed},
        "Drawing": {"\1Ole10Native": struct.pack("<I", 8) + b"BMpicture"},
        "Old": {"WordDocument": b"x"},
    }
    path = written(tmp_path, made.outlook_properties({SUBJECT: "Berths"}, objects))
    names = ["Worksheet", "plan.txt", "Drawing", "Old"]
    assert [block.text for block in from_msg.parse(path)][1:] == ["Attachments: " + ", ".join(names)]
    found = {extracted.name: extracted.content for extracted in from_msg.extract(path)}
    assert found["plan.txt"] == plan
    (tmp_path / "found").write_bytes(bytes(found.pop("Worksheet")))
    assert "Harbour\tBerths" in [block.text for block in from_xlsx.parse(tmp_path / "found")]
    assert list(found) == ["plan.txt"]


def test_addresses_of_recipients(tmp_path: Path) -> None:
    """Outlook stores them beside the message, whose own headers have only their names."""
    tree = made.outlook_properties({0x0037: "Berths", 0x0E04: "Bob; Cid", 0x0E03: "Dee", 0x1000: "Free."}, {})
    people = (("Bob", "bob@example.org", 1), ("Cid", "", 1), ("Dee", "dee@example.org", 2))
    for place, (name, address, kind) in enumerate(people):
        tree[f"__recip_version1.0_#{place:08X}"] = {
            "__properties_version1.0": bytes(8) + struct.pack("<IIQ", 0x0C150003, 6, kind),
            "__substg1.0_3001001F": name.encode("utf-16-le"),
            "__substg1.0_39FE001F": address.encode("utf-16-le"),
        }
    path = tmp_path / "a.msg"
    path.write_bytes(made.compound_file(tree))
    head = next(iter(from_msg.parse(path))).text.split("\n")
    assert head == ["Subject: Berths", "To: Bob <bob@example.org>; Cid", "Cc: Dee <dee@example.org>"]
