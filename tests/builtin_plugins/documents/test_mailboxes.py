"""Mailboxes: each message is read as a message, and what was deleted stays away."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from builtin_plugins.documents.cleaning import clean
from builtin_plugins.documents.detection import detect_media_type
from builtin_plugins.documents.mail import from_eml, from_mbox

GMAIL = "From 1787293812345678901@xxx Mon Jan 01 10:00:00 +0000 2024\r\n"
THUNDERBIRD = "From - Mon Jan  1 10:00:00 2024\n"
BARE = "From \n"


def message(subject: str, text: str, more: str = "") -> str:
    encoded = base64.b64encode(text.encode()).decode()
    return (
        f"{more}From: ann@example.org\nSubject: {subject}\nMIME-Version: 1.0\n"
        "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n"
        f"\n{encoded}\n\n"
    )


def written(folder: Path, text: str) -> Path:
    path = folder / "a.mbox"
    path.write_bytes(text.encode())
    return path


def texts(path: Path) -> list[str]:
    return [text for block in from_mbox.parse(path) if (text := clean(block.text))]


@pytest.mark.parametrize("separator", [GMAIL, THUNDERBIRD, BARE])
def test_messages_are_decoded(tmp_path: Path, separator: str) -> None:
    path = written(
        tmp_path, separator + message("Rent", "Fünfzig Euro") + separator + message("Tide", "High")
    )
    assert detect_media_type(path, "Inbox") == "application/mbox"
    assert texts(path) == [
        "Subject: Rent\nFrom: ann@example.org",
        "Fünfzig Euro",
        "Subject: Tide\nFrom: ann@example.org",
        "High",
    ]


def test_messages_in_different_encodings(tmp_path: Path) -> None:
    """Japanese in ISO 2022, whose bytes are all ASCII but full of escapes, beside 8-bit messages."""
    texts_by_codec = {
        "iso-2022-jp": "A 会議 B 東京 C",
        "iso-8859-1": "Grüße aus Köln",
        "koi8-r": "Встреча в Москве",
    }
    path = tmp_path / "a.mbox"
    path.write_bytes(
        b"".join(
            f"{THUNDERBIRD}From: a@b.c\nSubject: S\nContent-Type: text/plain; charset={codec}\n\n".encode()
            + "\n".join([text] * 20).encode(codec)
            + b"\n\n"
            for codec, text in texts_by_codec.items()
        )
    )
    assert detect_media_type(path, "a.mbox") == "application/mbox"
    found = texts(path)
    assert all("\n".join([text] * 20) in found for text in texts_by_codec.values())


def test_text_that_begins_like_a_separator(tmp_path: Path) -> None:
    """A sentence that begins with "From" ends no message; the mark that writers put before one is dropped."""
    body = (
        "From: a@b.c\nSubject: S\n\nHello.\n\nFrom here we walk.\n\nFrom Oslo Mon Jan  1 10:00:00 2024\nto\n"
    )
    path = written(tmp_path, THUNDERBIRD + body + "\n>From now on.\n")
    (_, text) = texts(path)
    assert "From here we walk." in text and "From Oslo Mon" in text
    assert "\nFrom now on." in text


def test_deleted_messages_are_left_out(tmp_path: Path) -> None:
    gone = message("Gone", "secret", "X-Mozilla-Status: 0009\nX-Mozilla-Status2: 00000000\n")
    kept = message("Kept", "plain", "X-Mozilla-Status: 0001\nX-Mozilla-Status2: 00000000\n")
    path = written(tmp_path, THUNDERBIRD + gone + THUNDERBIRD + kept)
    assert texts(path) == ["Subject: Kept\nFrom: ann@example.org", "plain"]


def test_attachments_come_out(tmp_path: Path) -> None:
    """The attachments of every message become files."""
    attached = (
        "From: a@b.c\nSubject: {0}\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n"
        "--b\nContent-Type: text/plain\n\nSee the file.\n"
        '--b\nContent-Type: text/csv; name="{0}.csv"\n\na,b\n1,2\n--b--\n\n'
    )
    path = written(tmp_path, THUNDERBIRD + attached.format("one") + THUNDERBIRD + attached.format("two"))
    assert [(file.name, file.content) for file in from_mbox.extract(path)] == [
        ("one.csv", b"a,b\n1,2"),
        ("two.csv", b"a,b\n1,2"),
    ]
    assert "Attachments: one.csv" in texts(path)


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("charset", ["", "; charset=utf-16", "; charset=iso-8859-1"])
def test_message_in_utf_16(tmp_path: Path, codec: str, charset: str) -> None:
    """A message saved as "Unicode" has its headers read, whether a mark begins it or not."""
    source = (
        "From: Ada <a@example.org>\r\nSubject: Übergabe am Montag\r\nMIME-Version: 1.0\r\n"
        f"Content-Type: text/plain{charset}\r\n\r\nDer Schlüssel liegt im Büro.\r\n"
    )
    path = tmp_path / "a.eml"
    path.write_bytes(source.encode(codec))
    assert detect_media_type(path, path.name) == "message/rfc822"
    blocks = [clean(block.text) for block in from_eml.parse(path)]
    assert blocks == [
        "Subject: Übergabe am Montag\nFrom: Ada <a@example.org>",
        "Der Schlüssel liegt im Büro.",
    ]


@pytest.mark.parametrize(
    "said", ["On Monday, Ann wrote:", "Am Montag schrieb Ann:", "Le lundi, Ann a écrit :"]
)
def test_quoted_messages(tmp_path: Path, said: str) -> None:
    """What a reply quotes is read once: in the message itself, or in the first quote if that is not there."""
    first = "High water is at nine.\nThe berths are free."
    second = f"Thanks, we come.\n\n{said}\n> High water is at nine.\n>\n> The berths are free.\n"
    third = f"Fine.\n\n{said}\n> Thanks, we come.\n>> High water is at nine.\n> The crane was broken."
    path = written(tmp_path, "".join(BARE + message("x", text) for text in (first, second, third)))
    bodies = [text for text in texts(path) if not text.startswith("Subject")]
    assert bodies == [first, "Thanks, we come.", "Fine.\n> The crane was broken."]
    assert "\n".join(bodies).count("High water") == 1


def test_quotes_of_what_is_not_there(tmp_path: Path) -> None:
    text = "Fine.\n\nOn Monday, Ann wrote:\n> The crane was broken.\n> Thanks!"
    assert texts(written(tmp_path, BARE + message("x", text)))[1:] == [text]
