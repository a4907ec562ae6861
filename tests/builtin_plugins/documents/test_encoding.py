"""Code pages found where the text shows them, colours of terminals, and pages without a head."""

from __future__ import annotations

import random
import zipfile
from pathlib import Path

import pytest

from builtin_plugins.documents.archives import from_zip
from builtin_plugins.documents.blocks import parsed_text
from builtin_plugins.documents.cleaning import clean
from builtin_plugins.documents.detection import detect_media_type
from builtin_plugins.documents.extraction import extract_into
from builtin_plugins.documents.mail import from_eml
from builtin_plugins.documents.markup import from_html
from builtin_plugins.documents.refusals import why_refused
from builtin_plugins.documents.text import from_csv, from_text
from builtin_plugins.documents.text.encoding import detect_encoding, without_ansi

RUSSIAN = "Совещание начинается в понедельник в три часа. Договор аренды подписан. "
JAPANESE = "会議は月曜日の午後三時に始まります。資料を読んでください。"
LOG = "\x1b[32mINFO\x1b[0m  \x1b[1;38;5;208mserver\x1b[m started\n\x1b[31mERROR\x1b[0m disk full\n"


def written(folder: Path, data: bytes) -> Path:
    path = folder / "file"
    path.write_bytes(data)
    return path


class TestLateText:
    @pytest.mark.parametrize("before", [20_000, 65_536, 65_540, 200_000])
    @pytest.mark.parametrize(
        ("codec", "text"),
        [("cp1251", RUSSIAN * 5), ("cp932", JAPANESE), ("euc_jp", JAPANESE), ("utf-8", RUSSIAN)],
    )
    def test_ascii_decides_nothing(self, tmp_path: Path, codec: str, text: str, before: int) -> None:
        """The first part that is not ASCII decides, however late it comes."""
        path = written(tmp_path, b"plain line\n" * (before // 11 + 1) + text.encode(codec))
        assert parsed_text(from_text.parse(path)).endswith(text)

    def test_tables_too(self, tmp_path: Path) -> None:
        """Every reader of text looks as far."""
        rows = b"name,town\n" + b"Ann,Oslo\n" * 8_000 + f"{RUSSIAN},{RUSSIAN}\n".encode("cp1251")
        assert list(from_csv.parse(written(tmp_path, rows)))[-1].text == (
            f"name: {RUSSIAN.strip()}\ntown: {RUSSIAN.strip()}"
        )

    def test_pure_ascii(self, tmp_path: Path) -> None:
        """Text that has nothing else is read to its end."""
        path = written(tmp_path, b"plain line\n" * 20_000)
        assert parsed_text(from_text.parse(path)).count("plain line") == 20_000


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["Office hours: 9 to 5.", "Größe – 12 €\n" * 9_000, "id,name\n1,Zoë\n"])
def test_utf_16_without_a_mark(tmp_path: Path, codec: str, text: str) -> None:
    path = written(tmp_path, text.encode(codec))
    assert detect_media_type(path, "notes.txt") == "text/plain"
    assert parsed_text(from_text.parse(path)).split() == text.split()


KOREAN = "회의는 월요일 오후 세 시에 시작합니다. 자료를 읽어 주십시오."


@pytest.mark.parametrize(("codec", "text"), [("iso2022_jp", JAPANESE), ("iso2022_kr", KOREAN)])
@pytest.mark.parametrize("times", [1, 3_000])
def test_text_that_switches_character_sets(tmp_path: Path, codec: str, text: str, times: int) -> None:
    path = written(tmp_path, f"{text}\n".encode(codec) * times)
    assert detect_media_type(path, "notes.txt") == "text/plain"
    assert parsed_text(from_text.parse(path)).split() == text.split() * times


def test_what_windows_adds_to_iso_2022(tmp_path: Path) -> None:
    """Numbers in circles and names in mail of Windows, read as Windows does; a text that is cut off."""
    more = b"\x1b$B\x2d\x21\x2d\x6a\x7c\x62\x1b(B"
    data = f"{JAPANESE}\n".encode("iso2022_jp") + more
    path = written(tmp_path, data)
    assert detect_media_type(path, "notes.txt") == "text/plain"
    assert parsed_text(from_text.parse(path)).split() == [JAPANESE, "①㈱髙"]
    head = b"From: a@example.jp\nSubject: plan\nContent-Type: text/plain; charset=iso-2022-jp\n\n"
    message = parsed_text(from_eml.parse(written(tmp_path, head + data)))
    assert JAPANESE in message and "①㈱髙" in message
    assert parsed_text(from_text.parse(written(tmp_path, data[:-4]))).startswith(JAPANESE)


@pytest.mark.parametrize("times", [1, 10_000])
def test_a_few_foreign_bytes(tmp_path: Path, times: int) -> None:
    """A file of UTF-8 with something pasted from elsewhere is text, however early that comes."""
    path = written(tmp_path, f"{RUSSIAN}\n".encode() * times + b"a caf\xe9 nearby\n")
    assert detect_media_type(path, "notes.txt") == "text/plain"
    assert "a café nearby" in parsed_text(from_text.parse(path))


def test_a_switch_in_other_text() -> None:
    text = "print('\x1b$B')  # begins two bytes for each character\n" + "of words that are English\n" * 100
    assert detect_encoding(text.encode()) == "utf-8"


def test_a_message_that_switches_character_sets(tmp_path: Path) -> None:
    head = b"From: a@example.jp\nSubject: plan\nContent-Type: text/plain; charset=iso-2022-jp\n\n"
    path = written(tmp_path, head + JAPANESE.encode("iso2022_jp"))
    assert detect_media_type(path, "plan.eml") == "message/rfc822"
    assert JAPANESE in parsed_text(from_eml.parse(path))


SHORT = [
    ("cp1250", "A könyvtár reggel nyolckor nyit, és este hatkor zár. Előre kell bejelentkezni."),
    ("cp1250", "Umowa została podpisana w środę, a klucze są już u dozorcy."),
    ("cp1250", "Schůzka začíná v pondělí v devět hodin, přineste si prosím občanský průkaz."),
    ("cp1250", "Zmluva bola podpísaná v stredu a kľúče sú už u správcu budovy."),
    ("cp1250", "Şedinţa începe luni la ora nouă, iar cheile sunt la administrator."),
    ("cp1250", "Sastanak počinje u ponedjeljak u devet sati, a ključevi su kod domara."),
    ("iso8859-2", "Schůzka začíná v pondělí v devět hodin, přineste si prosím občanský průkaz."),
    ("cp1250", "Spotkanie jest w środę rano, biuro otwarte."),
    ("cp1250", "Cena: 5 zł"),
    ("cp1252", "La riunione è rinviata a lunedì, perché il direttore è già partito."),
    ("cp1252", "De vergadering is geannuleerd; de coördinator neemt contact op met alle geïnteresseerden."),
    ("cp1252", "Mødet begynder på mandag klokken ni, og nøglerne ligger hos viceværten."),
    ("cp1252", "La réunion est reportée à lundi – le gardien a déjà reçu les clés."),
    ("cp1254", "Toplantı pazartesi günü saat dokuzda başlıyor, anahtarlar kapıcıda."),
    ("cp1257", "Susitikimas prasideda pirmadienį devintą valandą, raktus turi sargas."),
    ("cp1251", "Зустріч починається в понеділок о дев’ятій, ключі у сторожа."),
    ("koi8-r", "Совещание начинается в понедельник в три часа."),
    ("cp1253", "Η συνάντηση αρχίζει τη Δευτέρα στις εννέα το πρωί."),
    ("cp1255", "הפגישה מתחילה ביום שני בשעה תשע."),
    ("cp1256", "يبدأ الاجتماع يوم الاثنين في الساعة التاسعة."),
    ("cp874", "การประชุมเริ่มวันจันทร์เวลาเก้าโมงเช้า"),
    ("gb18030", "会议星期一上午九点开始，钥匙在门卫那里。"),
    ("big5", "會議星期一上午九點開始，鑰匙在管理員那裡。"),
    ("cp932", "日本語の文書です。今日は良い天気です。"),
    ("euc-jp", "日本語の文書です。今日は良い天気です。"),
    ("cp932", "会議は月曜日の午後三時に始まります"),
    ("euc-jp", "会議は月曜日の午後三時に始まります"),
    ("cp932", "Tel. 03-1234、本日の予定について"),
    ("euc-jp", "Tel. 03-1234、本日の予定について"),
    ("cp949", "안녕하세요. 오늘은 날씨가 좋습니다."),
    ("cp949", "회의는 월요일 오후 세 시에 시작합니다"),
    ("cp949", "정말요 ㅋㅋㅋㅋ 좋아요"),
]


@pytest.mark.parametrize(("codec", "text"), SHORT)
def test_short_text(codec: str, text: str) -> None:
    """A sentence or two are enough to tell the code page, of languages that write alike too."""
    data = text.encode(codec)
    assert data.decode(detect_encoding(data) or "") == text


@pytest.mark.parametrize(("codec", "text"), SHORT)
def test_cut_in_a_character(codec: str, text: str) -> None:
    """What decides is a part of the file, which may end in the middle of a character."""
    for before in range(4):
        data = b"." * before + text.encode(codec) * (40_000 // len(text))
        assert text in data.decode(detect_encoding(data) or "")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "Store the vaccine between 2 °C and 8 °C.",
            "The room measures 5 × 4 m and the hall 12 × 9 m.",
            "Café 5 €",
        ),
        *("He said «yes» and left.", "Tromsø has a harbour.", "Coût : 5 €", "10 µm ± 3 %", "¼ cup of sugar"),
        "time;value\r\n" + "".join(f"s{n};{n} °C\r\n" for n in range(300)),
    ],
)
def test_few_marks(text: str) -> None:
    """Signs of measures and single letters with marks are Western European, not letters of other scripts."""
    data = text.encode("cp1252")
    assert data.decode(detect_encoding(data) or "") == text


@pytest.mark.parametrize("place", [10, 5_000])
def test_single_bad_byte_in_utf_8(tmp_path: Path, place: int) -> None:
    data = ("Die Müller mahlen täglich. " * 1_000).encode()
    path = written(tmp_path, data[:place] + b" M\xe4rz " + data[place:])
    text = parsed_text(from_text.parse(path))
    assert "März" in text and "Ã" not in text


def test_dos() -> None:
    """Russian text of MS-DOS is read too."""
    assert (RUSSIAN * 5).encode("cp866").decode(
        detect_encoding((RUSSIAN * 5).encode("cp866")) or ""
    ) == RUSSIAN * 5


def test_quotation_marks_of_windows() -> None:
    """Characters that only the Windows code page has tell it from its ISO cousin."""
    text = "Şedinţa începe luni: „cheile sunt la administrator” – a zis el."
    data = text.encode("cp1250") * 20
    assert data.decode(detect_encoding(data) or "") == text * 20


class TestColours:
    @pytest.mark.parametrize("codec", ["utf-8", "utf-16", "cp1251"])
    def test_log(self, tmp_path: Path, codec: str) -> None:
        """Escape sequences do not make a text binary, and are not in its passages."""
        path = written(tmp_path, (LOG * 20 + RUSSIAN).encode(codec))
        assert detect_media_type(path, "build.log") == "text/plain"
        expected = "INFO  server started\nERROR disk full\n" * 20 + RUSSIAN
        assert parsed_text(from_text.parse(path)) == expected

    @pytest.mark.parametrize(
        "sequence",
        [
            "\x1b[m",
            "\x1b[?25l",
            "\x1b[2K",
            "\x1b[38;2;1;2;3m",
            "\x1b(B\x1b[m",
            "\x1b[0 q",
            "\x1b]0;a title\x07",
            "\x1b]8;;https://example.org/\x1b\\",
        ],
    )
    def test_sequences(self, sequence: str) -> None:
        """Control sequences and what tells a terminal its title or a link, wherever they stand."""
        assert clean(f"a{sequence}b{sequence}") == "ab"

    @pytest.mark.parametrize(
        "text", ["a\x1bb", "a\x1b[", "\x1b]0;never ends\nnext line", "[31m is red", "\x1b$B%F"]
    )
    def test_other_text_stays(self, text: str) -> None:
        """What is no whole sequence takes no text with it."""
        assert without_ansi(text) == text

    def test_sequence_between_portions(self, tmp_path: Path) -> None:
        """A file that is read in portions is cleaned as one."""
        for before in range(32_760, 32_769):
            text = "".join(
                block.text for block in from_text.parse(written(tmp_path, b"a" * before + LOG.encode()))
            )
            assert text == "a" * before + "INFO  server started\nERROR disk full\n"

    def test_binary_is_still_refused(self, tmp_path: Path) -> None:
        """Neither escapes alone nor some between binary data make a text."""
        noise = random.Random(7).randbytes(20_000)
        for data in (
            noise,
            noise[:900] + LOG.encode(),
            b"\x1b" * 50 + b"a" * 900,
            b"\x7fELF\x1b[0m" + bytes(400),
        ):
            assert detect_media_type(written(tmp_path, data), "a.log") is None


class TestFragments:
    @pytest.mark.parametrize("name", ["page.html", "PAGE.HTM", "page.xhtml"])
    @pytest.mark.parametrize(
        "source",
        [
            "<h1>Tides</h1>\n<p>High <b>water</b></p>",
            '<div class="a"\n id=b>Tides<br/>High water</div>',
            '<?xml version="1.0"?>\n<section xmlns="http://www.w3.org/1999/xhtml"><p>Tides</p></section>',
            "Tides\n<p>High water",
            "{{ title }} <p>Tides &amp; more",
            "# Tides\n\n- one\n- two\n\n<p>and more</p>",
            "Tides &amp; high water",
        ],
    )
    def test_named_as_pages(self, tmp_path: Path, source: str, name: str) -> None:
        """Markup is enough in a file that is named as a page, and its tags are no text."""
        path = written(tmp_path, source.encode())
        assert detect_media_type(path, name) == "text/html"
        text = parsed_text(from_html.parse(path))
        assert "Tides" in text and "<" not in text and "&amp;" not in text

    @pytest.mark.parametrize(
        ("source", "name", "expected"),
        [
            ("<h1>Tides</h1>\n<p>High water", "page.txt", "text/plain"),
            ("<h1>Tides</h1>\n<p>High water", None, "text/plain"),
            ("Tides: 3 < 4 and 5 > 2 & more", "page.html", "text/plain"),
            ('{"a": "<p>b</p>"}', "page.html", "application/json"),
        ],
    )
    def test_others_stay(self, tmp_path: Path, source: str, name: str | None, expected: str) -> None:
        """Neither markup under another name nor text without markup is a page."""
        assert detect_media_type(written(tmp_path, source.encode()), name) == expected


@pytest.mark.parametrize("codec", ["cp037", "cp500", "cp273"])
def test_text_of_a_mainframe(tmp_path: Path, codec: str) -> None:
    """EBCDIC is refused with its remedy: it would become line drawing."""
    path = tmp_path / "a.txt"
    path.write_bytes(("INVOICE 4711 for Ann Smith, due on 12 May 2024.\n" * 20).encode(codec))
    assert detect_media_type(path, "a.txt") is None
    assert "EBCDIC" in (why_refused(path) or "")


@pytest.mark.parametrize("codec", ["euc-jp", "cp932"])
@pytest.mark.parametrize(
    "text", ["カタカナのテスト", "これはテストです。", "メモ：ひらがなとカタカナ", "Ver. 2 のおしらせです"]
)
def test_short_japanese(codec: str, text: str) -> None:
    """A line of kana is Japanese, neither Cyrillic nor Thai."""
    data = text.encode(codec)
    assert data.decode(detect_encoding(data) or "") == text


@pytest.mark.parametrize(
    ("codec", "text"),
    [("cp1251", "ЦЕЛЬ"), ("euc-jp", "カメラ"), ("cp1251", "Немає."), ("cp874", "รัฐเอกราชปาปัวนิวกินี")],
)
def test_unsure_text(tmp_path: Path, codec: str, text: str) -> None:
    """What may as well be of another script is refused with its remedy, and read as UTF-8."""
    path = written(tmp_path, text.encode(codec))
    assert detect_media_type(path, "a.txt") is None
    assert "UTF-8" in (why_refused(path) or "")
    assert detect_media_type(written(tmp_path, text.encode()), "a.txt") == "text/plain"


def test_pages_that_declare(tmp_path: Path) -> None:
    """A page is no guess if it names its encoding, however short it is."""
    path = written(tmp_path, "<html><meta charset=euc-jp><p>カメラ".encode("euc-jp"))
    assert detect_media_type(path, "a.html") == "text/html"
    assert parsed_text(from_html.parse(path)) == "カメラ"


@pytest.mark.parametrize(
    ("codec", "long", "short"),
    [
        ("euc-jp", JAPANESE, "カメラ"),
        ("euc-jp", JAPANESE, "会議"),
        ("cp1251", RUSSIAN, "Немає."),
        ("cp932", JAPANESE, "Größe: 5 µm".encode("cp1252")),
    ],
)
def test_neighbours_in_an_archive(tmp_path: Path, codec: str, long: str, short: str | bytes) -> None:
    """A short text is read in the code page of the longer ones beside it, unless it makes no sense in it."""
    folder = tmp_path / "out"
    folder.mkdir()
    data = short if isinstance(short, bytes) else short.encode(codec)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("short.txt", data)
        archive.writestr("long.txt", long.encode(codec))
        archive.writestr("new.txt", "Größe".encode())
    extract_into(str(tmp_path / "a.zip"), f"{from_zip.__name__}:extract", str(folder), [9, 100_000, 100_000])
    expected = data.decode("cp1252") if isinstance(short, bytes) else short
    assert [parsed_text(from_text.parse(folder / name)).strip() for name in "123"] == [
        expected,
        long.strip(),
        "Größe",
    ]
