"""E-mail of every shape: no text is lost, and no broken header costs the message."""

from __future__ import annotations

import base64
import struct
from email.message import EmailMessage
from pathlib import Path

import pytest

from builtin_plugins.documents.cleaning import clean
from builtin_plugins.documents.mail import from_eml

PLAIN = "Content-Type: text/plain; charset=utf-8\n\n{}\n"
HTML = "Content-Type: text/html; charset=utf-8\n\n<p>{}</p>\n"
PICTURE = 'Content-Type: image/png; name="map.png"\nContent-Disposition: inline; filename="map.png"\n\nx\n'


def parts(kind: str, *inside: str) -> str:
    """A part that holds others."""
    boundary = f"b{kind}{len(''.join(inside))}"
    body = "".join(f"--{boundary}\n{part}" for part in inside)
    return f'Content-Type: multipart/{kind}; boundary="{boundary}"\n\n{body}--{boundary}--\n'


def message(body: str, headers: str = "From: ann@example.org\n") -> str:
    return f"{headers}MIME-Version: 1.0\n{body}"


def read(folder: Path, source: str | bytes) -> list[str]:
    """The texts of the message without its headers."""
    return read_all(folder, source)[1:]


def read_all(folder: Path, source: str | bytes) -> list[str]:
    return [text for block in from_eml.parse(written(folder, source)) if (text := clean(block.text))]


def written(folder: Path, source: str | bytes) -> Path:
    path = folder / "message"
    path.write_bytes(source.encode() if isinstance(source, str) else source)
    return path


class TestTexts:
    def test_text_around_a_picture(self, tmp_path: Path) -> None:
        """Every text part is read, in order, as Apple Mail writes them."""
        body = parts("mixed", PLAIN.format("Before."), PICTURE, PLAIN.format("After."), HTML.format("End."))
        assert read(tmp_path, message(body)) == ["Before.", "After.", "End.", "Attachments: map.png"]

    @pytest.mark.parametrize("blank", ["", " \n\t\n", "\u00a0"])
    def test_blank_text_beside_html(self, tmp_path: Path, blank: str) -> None:
        body = parts("alternative", PLAIN.format(blank), HTML.format("High water"))
        assert read(tmp_path, message(body)) == ["High water"]

    def test_alternatives_are_read_once(self, tmp_path: Path) -> None:
        plain, html = PLAIN.format("High water"), parts("related", HTML.format("Noise"), PICTURE)
        calendar = "Content-Type: text/calendar\n\nBEGIN:VCALENDAR\n"
        for order in ((plain, html, calendar), (calendar, html, plain)):
            texts = read(tmp_path, message(parts("alternative", *order)))
            assert texts == ["High water", "Attachments: map.png"]
        found = read(tmp_path, message(parts("alternative", calendar, HTML.format("A page"))))
        assert found == ["A page"]

    def test_html_in_pieces_beside_text(self, tmp_path: Path) -> None:
        pieces = parts("mixed", HTML.format("One"), PICTURE, HTML.format("Two"))
        body = parts("alternative", PLAIN.format(""), pieces)
        assert read(tmp_path, message(body)) == ["One", "Two", "Attachments: map.png"]

    def test_all_alternatives_blank(self, tmp_path: Path) -> None:
        """There is no text then, and no fault either."""
        assert read(tmp_path, message(parts("alternative", PLAIN.format(""), PLAIN.format(" ")))) == []

    def test_message_that_is_all_text(self, tmp_path: Path) -> None:
        """A message of one part is its text, also under a file name; without its boundaries it is too."""
        named = 'Content-Type: text/plain; name="a.txt"\nContent-Disposition: attachment\n\nHello.\n'
        assert read(tmp_path, message(named)) == ["Hello."]
        assert read(tmp_path, message("Content-Type: multipart/mixed\n\nHello.\n")) == ["Hello."]

    def test_invalid_character_set(self, tmp_path: Path) -> None:
        """A name that no codec can have gives way to the bytes."""
        body = "Content-Type: text/plain; charset*=utf-8''a%00b\n\nFyret på Senja"
        assert read(tmp_path, message(body)) == ["Fyret på Senja"]


class TestAttachments:
    def test_without_a_name(self, tmp_path: Path) -> None:
        """What is marked as an attachment is one, under a made-up name that fits its type."""
        marked = "Content-Type: {}\nContent-Disposition: attachment\n\nwords\n"
        kinds = ("application/pdf", "text/plain", "text/html", "application/x-unheard-of")
        body = parts("mixed", PLAIN.format("See below."), *(marked.format(kind) for kind in kinds))
        names = ["attachment 1.pdf", "attachment 2.txt", "attachment 3.html", "attachment 4.bin"]
        path = written(tmp_path, message(body))
        assert read(tmp_path, message(body)) == ["See below.", "Attachments: " + ", ".join(names)]
        assert [(one.name, one.content) for one in from_eml.extract(path)] == [(n, b"words") for n in names]

    def test_message_that_is_one_file(self, tmp_path: Path) -> None:
        body = "Content-Type: application/pdf\nContent-Transfer-Encoding: base64\n\nJVBERg==\n"
        source = message(f"Content-Disposition: attachment\n{body}")
        assert read(tmp_path, source) == ["Attachments: attachment 1.pdf"]
        (file,) = from_eml.extract(written(tmp_path, source))
        assert file == ("attachment 1.pdf", b"%PDF", None)


class TestBrokenHeaders:
    @pytest.mark.parametrize("value", ["<b@", "b@", "a@[1.2.3.4", 'Ann <"', "=?utf-8?q?=", "Bj\udcf8rn <b@"])
    @pytest.mark.parametrize("name", ["To", "From", "Cc"])
    def test_text_is_read(self, tmp_path: Path, name: str, value: str) -> None:
        """Whatever a header says, the message is read, and the header as it was written."""
        head = f"Subject: Tide\n{name}: {value}\n".encode("utf-8", "surrogateescape")
        texts = read_all(tmp_path, head + message(PLAIN.format("High water."), "").encode())
        assert texts[0].startswith("Subject: Tide" if name == "To" else "") and texts[1:] == ["High water."]
        if value.endswith("@"):
            assert f"{name}: {value}".replace("\udcf8", "ø") in texts[0].split("\n")

    @pytest.mark.parametrize(
        "header", ["Content-Type: text/plain; =", "Content-Disposition: inline; x*=b@[1"]
    )
    def test_kinds_of_parts(self, tmp_path: Path, header: str) -> None:
        """The headers of a part cost nothing either."""
        assert read(tmp_path, message(f"{header}\n\nHello.\n")) == ["Hello."]

    def test_forwarded_message(self, tmp_path: Path) -> None:
        """It is taken out as it was sent, with its broken headers, even long ones."""
        inner = f"Subject: Storm\nTo: {'a' * 100}@[1.2.3.4\n\nWind.\n"
        body = parts("mixed", PLAIN.format("Read this."), f"Content-Type: message/rfc822\n\n{inner}")
        path = written(tmp_path, message(body))
        assert read(tmp_path, message(body)) == ["Read this.", "Attachments: Storm"]
        (file,) = from_eml.extract(path)
        assert file.name == "Storm.eml" and isinstance(file.content, bytes)
        assert file.content.decode().strip() == inner.strip()

    def test_whole_headers_are_decoded(self, tmp_path: Path) -> None:
        letter = EmailMessage()
        letter["Subject"], letter["To"] = "Flo og fjære", "Bjørn Ås <b@example.org>"
        letter.set_content("Hei.")
        expected = "Subject: Flo og fjære\nTo: Bjørn Ås <b@example.org>"
        assert read_all(tmp_path, letter.as_bytes()) == [expected, "Hei."]


class TestDamage:
    @pytest.mark.parametrize("end", ["", "!!\n", "\n--\nA footer of a mailing list\n"])
    @pytest.mark.parametrize("cut", [1, 2, 3])
    def test_base64_that_is_cut_off(self, tmp_path: Path, cut: int, end: str) -> None:
        """Text and files are read as far as they go, not taken for the letters that spell them."""
        words = "The bridge over the river is closed until the end of the month of May. " * 9
        encoded = base64.encodebytes(words.encode()).decode().rstrip("=\n")[:-cut] + end
        head = "Content-Transfer-Encoding: base64\n"
        (text,) = read(tmp_path, message(f"Content-Type: text/plain\n{head}\n{encoded}"))
        assert text.startswith(words[:600]) and "VGhl" not in text
        attached = f'Content-Type: application/pdf; name="a.pdf"\n{head}\n{encoded}\n'
        path = written(tmp_path, message(parts("mixed", PLAIN.format("Look."), attached)))
        (file,) = from_eml.extract(path)
        assert isinstance(file.content, bytes) and file.content.startswith(words[:600].encode())

    def test_text_that_only_claims_to_be_encoded(self, tmp_path: Path) -> None:
        words = "High water, at nine: be careful."
        body = f"Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\n{words}\n"
        assert read(tmp_path, message(body)) == [words]

    @pytest.mark.parametrize(
        ("codec", "words"), [("cp1252", "Die Tür ist zu."), ("koi8-r", "Ключи у сторожа.")]
    )
    def test_foreign_letters_that_only_claim_to_be_encoded(
        self, tmp_path: Path, codec: str, words: str
    ) -> None:
        head = f"Content-Type: text/plain; charset={codec}\nContent-Transfer-Encoding: base64\n\n"
        assert read(tmp_path, message(head).encode() + words.encode(codec)) == [words]

    @pytest.mark.parametrize("blank", ["", "\n"])
    def test_a_footer_below_base64(self, tmp_path: Path, blank: str) -> None:
        """What a virus scanner wrote below the end is not decoded, and costs no letter of the text."""
        words = "Die Brücke über den Fluß ist gesperrt. " * 9 + "!"
        encoded = base64.encodebytes(words.encode()).decode()
        assert encoded.endswith("=\n")
        body = f"Content-Transfer-Encoding: base64\n\n{encoded}{blank}This mail was checked: no virus.\n"
        assert read(tmp_path, message(f"Content-Type: text/plain; charset=utf-8\n{body}")) == [words]

    def test_forwarded_message_that_is_encoded(self, tmp_path: Path) -> None:
        inner = base64.encodebytes(message(PLAIN.format("Wind."), "Subject: Storm\n").encode()).decode()
        part = f"Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n{inner}"
        source = message(parts("mixed", PLAIN.format("Read this."), part))
        assert read(tmp_path, source) == ["Read this.", "Attachments: Storm"]
        (file,) = from_eml.extract(written(tmp_path, source))
        assert isinstance(file.content, bytes) and read(tmp_path, file.content) == ["Wind."]

    @pytest.mark.parametrize(
        ("subject", "codec"),
        [
            *[("Märchen für Jürgen", "cp1252"), ("Märchen", "utf-8"), ("Совещание", "koi8-r")],
            ("会議の件", "iso-2022-jp"),
        ],
    )
    def test_headers_that_are_not_encoded(self, tmp_path: Path, subject: str, codec: str) -> None:
        head = f"Subject: {subject}\nFrom: ann@example.org\n".encode(codec)
        assert read_all(tmp_path, head + b"\nHello.\n")[0].startswith(f"Subject: {subject}\n")

    def test_byte_order_mark(self, tmp_path: Path) -> None:
        """It does not turn the headers into text."""
        source = b"\xef\xbb\xbf" + message(PLAIN.format("Hello."), "Subject: Tide\n").encode()
        assert read_all(tmp_path, source) == ["Subject: Tide", "Hello."]


def wrapped(*files: tuple[str, str, bytes]) -> bytes:
    def attribute(tag: int, value: bytes) -> bytes:
        return struct.pack("<BII", 2, tag, len(value)) + value + struct.pack("<H", sum(value) & 0xFFFF)

    data = b"\x78\x9f\x3e\x22\x01\x00"
    for short, long, content in files:
        name = long.encode("utf-16-le") + b"\0\0"
        properties = struct.pack("<IHHII", 1, 0x001F, 0x3707, 1, len(name)) + name
        data += attribute(0x00069002, bytes(14)) + attribute(0x00018010, short.encode() + b"\0")
        data += attribute(0x0006800F, content) + (attribute(0x00069005, properties) if long else b"")
    return data


def enclosed(content: bytes) -> str:
    return (
        "Content-Type: application/ms-tnef; name=winmail.dat\nContent-Transfer-Encoding: base64\n\n"
        f"{base64.encodebytes(content).decode()}"
    )


def test_files_that_outlook_wrapped(tmp_path: Path) -> None:
    """The attachments in a winmail.dat come out under their names; one that is damaged stays as it is."""
    content = wrapped(("RENT~1.TXT", "Rent in Köln.txt", b"Fifty euro."), ("a.csv", "", b"a,b\n1,2\n"))
    path = written(tmp_path, message(parts("mixed", PLAIN.format("See below."), enclosed(content))))
    assert [(file.name, file.content) for file in from_eml.extract(path)] == [
        ("Rent in Köln.txt", b"Fifty euro."),
        ("a.csv", b"a,b\n1,2\n"),
    ]
    assert [block.text for block in from_eml.parse(path)][-1] == "Attachments: Rent in Köln.txt, a.csv"
    path = written(tmp_path, message(parts("mixed", PLAIN.format("See below."), enclosed(content[:40]))))
    assert [file.name for file in from_eml.extract(path)] == ["winmail.dat"]


def element(tag: int, content: bytes, *, open_end: bool = False) -> bytes:
    """An element of BER, whose length is said, or which goes on until two zeros."""
    if open_end:
        return bytes([tag, 0x80]) + content + b"\0\0"
    size = len(content)
    length = bytes([size]) if size < 0x80 else b"\x82" + size.to_bytes(2, "big")
    return bytes([tag]) + length + content


def sealed(content: bytes, kind: int = 2, *, open_end: bool = False) -> bytes:
    """Data of that kind (2: signed, 3: enveloped) around a message, as programs stream it or not."""
    name = element(6, bytes.fromhex("2a864886f70d0107") + bytes([kind]))
    octets = element(4, content)
    if open_end:
        octets = element(0x24, element(4, content[:9]) + element(4, content[9:]), open_end=True)
    inside = element(0x30, name + element(0xA0, octets, open_end=open_end), open_end=open_end)
    signed = element(0x30, element(2, b"\1") + element(0x31, b"") + inside, open_end=open_end)
    return element(0x30, name + element(0xA0, signed, open_end=open_end), open_end=open_end)


def in_signature(data: bytes) -> str:
    return (
        "Subject: Sealed\nContent-Type: application/pkcs7-mime; name=smime.p7m\n"
        "Content-Disposition: attachment; filename=smime.p7m\nContent-Transfer-Encoding: base64\n\n"
        f"{base64.encodebytes(data).decode()}"
    )


@pytest.mark.parametrize("open_end", [False, True])
def test_message_inside_a_signature(tmp_path: Path, open_end: bool) -> None:
    """A message that its signature is wrapped around is read, with the headers that are outside."""
    inner = parts("mixed", PLAIN.format("Fifty euro."), PICTURE).encode()
    path = written(tmp_path, message(in_signature(sealed(inner, open_end=open_end))))
    assert [block.text.strip() for block in from_eml.parse(path)] == [
        "Subject: Sealed\nFrom: ann@example.org",
        "Fifty euro.",
        "Attachments: map.png",
    ]
    assert [file.name for file in from_eml.extract(path)] == ["map.png"]


def test_message_inside_two_signatures(tmp_path: Path) -> None:
    """A gateway signs what the sender signed; what is inside one another for ever is not followed."""
    data = sealed(PLAIN.format("Fifty euro.").encode())
    path = written(tmp_path, message(in_signature(sealed(in_signature(data).encode()))))
    assert [block.text.strip() for block in from_eml.parse(path)][-1] == "Fifty euro."
    for _ in range(9):
        data = sealed(in_signature(data).encode())
    path = written(tmp_path, message(in_signature(data)))
    assert [block.text for block in from_eml.parse(path)][-1] == "Attachments: smime.p7m"


@pytest.mark.parametrize("kind", ["application/pkcs7-signature", "application/pgp-signature"])
def test_signature_beside_the_message(tmp_path: Path, kind: str) -> None:
    """It is no attachment: nothing is in it to read, and nobody misses it."""
    signature = f"Content-Type: {kind}; name=smime.p7s\nContent-Disposition: attachment\n\nMIIF\n"
    path = written(tmp_path, message(parts("signed", PLAIN.format("Fifty euro."), signature)))
    assert [block.text.strip() for block in from_eml.parse(path)][1:] == ["Fifty euro."]
    assert list(from_eml.extract(path)) == []


def test_what_is_damaged_stays_closed(tmp_path: Path) -> None:
    whole = sealed(PLAIN.format("Fifty euro.").encode(), open_end=True)
    for data in (whole[:40], whole[:-3][:60], b"0" * 50, b""):
        path = written(tmp_path, message(in_signature(data)))
        assert read_all(tmp_path, path.read_bytes())[-1] == "Attachments: smime.p7m"


def enciphered(kind: str) -> str:
    """A message for the eyes of its receiver alone."""
    if kind == "S/MIME":
        return in_signature(sealed(b"x" * 200, kind=3))
    if kind == "S/MIME, cut off":
        return in_signature(sealed(b"x" * 200, kind=3, open_end=True)[:90])
    return (
        'Content-Type: multipart/encrypted; protocol="application/pgp-encrypted"; boundary=b\n\n'
        "--b\nContent-Type: application/pgp-encrypted\n\nVersion: 1\n"
        "--b\nContent-Type: application/octet-stream; name=smime.p7m\n\n-----BEGIN PGP MESSAGE-----\n--b--\n"
    )


@pytest.mark.parametrize("kind", ["S/MIME", "S/MIME, cut off", "PGP"])
@pytest.mark.parametrize("is_part", [False, True])
def test_what_is_encrypted_says_so(tmp_path: Path, kind: str, is_part: bool) -> None:
    body = enciphered(kind)
    path = written(tmp_path, message(parts("mixed", body, PLAIN.format("Footer.")) if is_part else body))
    texts = [block.text.strip() for block in from_eml.parse(path)][1:]
    assert texts == [*(["Footer."] if is_part else []), "Attachments: smime.p7m (encrypted)"]
    assert [(file.name, file.left_out) for file in from_eml.extract(path)] == [("smime.p7m", "encrypted")]


def test_signed_part_of_a_message(tmp_path: Path) -> None:
    """A mailing list puts its footer beside what was signed, which is read as the message it is."""
    inner = in_signature(sealed(parts("mixed", PLAIN.format("Fifty euro."), PICTURE).encode()))
    path = written(tmp_path, message(parts("mixed", inner, PLAIN.format("Footer."))))
    assert [block.text.strip() for block in from_eml.parse(path)][1:] == [
        "Fifty euro.",
        "Footer.",
        "Attachments: map.png",
    ]


@pytest.mark.parametrize("kind", ["pkcs7-mime", "octet-stream"])
def test_signed_file(tmp_path: Path, kind: str) -> None:
    """A contract inside its signature, as Italian mail has them, comes out without it."""
    content = base64.encodebytes(sealed(b"%PDF-1.7 A contract.")).decode()
    attached = (
        f"Content-Type: application/{kind}; name=contract.pdf.p7m\n"
        f"Content-Disposition: attachment\nContent-Transfer-Encoding: base64\n\n{content}"
    )
    path = written(tmp_path, message(parts("mixed", PLAIN.format("See below."), attached)))
    assert [block.text.strip() for block in from_eml.parse(path)][-1] == "Attachments: contract.pdf"
    assert [(file.name, file.content) for file in from_eml.extract(path)] == [
        ("contract.pdf", b"%PDF-1.7 A contract.")
    ]


@pytest.mark.parametrize(
    ("split", "text", "expected"),
    [
        ("", "One \nsentence. \n\nNext\nline\n-- \nAnn\n", "One sentence. \n\nNext\nline\n-- \nAnn"),
        ("", "> a \n> b \n>> c \n d\n", "> a b \n>> c \nd"),
        ("; DelSp=yes", "\u6771 \n\u4eac\n", "\u6771\u4eac"),
    ],
)
def test_lines_wrapped_for_sending(tmp_path: Path, split: str, text: str, expected: str) -> None:
    """Paragraphs that the sender's program wrapped are whole again, at each depth of quotes."""
    body = f"Content-Type: text/plain; charset=utf-8; format=flowed{split}\n\n{text}"
    assert read(tmp_path, message(body)) == [expected]


def test_saved_web_page(tmp_path: Path) -> None:
    """A browser's .mhtml is read like a message, without the styles and scripts in it."""
    style = "Content-Type: text/css\nContent-Location: cid:css\n\np { color: red }\n"
    script = "Content-Type: text/javascript\n\nlet x = 1;\n"
    page = parts("related", HTML.format("The page."), style, script, HTML.format("A frame."))
    assert read(tmp_path, message(page, "From: <Saved by Blink>\n")) == ["The page.", "A frame."]


HEADERS = "{}: Ann\n{}: Monday\n{}: Bob\n{}: Tide\n\n"


@pytest.mark.parametrize(
    "separator",
    [
        "On Monday 2 June, Ann wrote:\n",
        "-----Original Message-----\n" + HEADERS.format("From", "Sent", "To", "Subject"),
        "-----Ursprüngliche Nachricht-----\n" + HEADERS.format("Von", "Gesendet", "An", "Betreff"),
        HEADERS.format("De", "Envoyé", "À", "Objet"),
        HEADERS.format("De", "Enviado el", "Para", "Asunto"),
        HEADERS.format("Da", "Inviato", "A", "Oggetto"),
        HEADERS.format("De", "Enviada em", "Para", "Assunto"),
        HEADERS.format("Van", "Verzonden", "Aan", "Onderwerp"),
        HEADERS.format("Fra", "Sendt", "Til", "Emne"),
        HEADERS.format("Från", "Skickat", "Till", "Ämne"),
        HEADERS.format("Od", "Wysłano", "Do", "Temat"),
        HEADERS.format("От", "Отправлено", "Кому", "Тема"),
    ],
)
@pytest.mark.parametrize("marked", [True, False])
def test_a_thread_in_one_message(tmp_path: Path, separator: str, marked: bool) -> None:
    """A history that repeats is read once, and so is what introduces it; short answers between stay."""
    said = "High water is at nine.\nThe berths are free."
    again = f"{separator}{said}"
    level = f"The crane was broken.\n\n{again}\n\n{again}\nYes.\n"
    if marked:
        level = "".join(f"> {line}\n" for line in level.split("\n"))
    body = f"Content-Type: text/plain; charset=utf-8\n\nFine.\n\n{separator}{level}"
    (text,) = read(tmp_path, message(body))
    assert text.count("High water is at nine.") == text.count("The berths are free.") == 1
    assert text.count(separator.partition("\n")[0]) == 2
    assert marked or text.endswith("Yes.")


def test_own_words_are_no_history(tmp_path: Path) -> None:
    """Lines that repeat in what somebody wrote, such as in a poem or a table, stay."""
    text = "The poet wrote:\nRoll on, you waves.\nA: The tide is high.\nRoll on, you waves."
    assert read(tmp_path, message(f"Content-Type: text/plain\n\n{text}\n")) == [text]
