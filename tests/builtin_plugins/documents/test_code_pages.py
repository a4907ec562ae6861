"""Code pages of MS-DOS and the Macintosh, and names of code pages that mean others."""

from __future__ import annotations

from pathlib import Path

import pytest

from builtin_plugins.documents.blocks import parsed_text
from builtin_plugins.documents.mail import from_eml
from builtin_plugins.documents.markup import from_html
from builtin_plugins.documents.text.encoding import detect_encoding

LETTERS = {
    "de": "Die Schlüssel für das Büro liegen beim Hausmeister. Die Räume sind täglich ab acht Uhr geöffnet, "
    "außer an Feiertagen; größere Gruppen müssen sich früher anmelden.",
    "fr": "La réunion est reportée à lundi, le gardien a déjà reçu les clés. Les élèves présents à la fête "
    "ont été très intéressés par la leçon de géographie.",
    "es": "La reunión comenzará mañana a las nueve; el señor Núñez traerá la documentación según el plan del "
    "año pasado, también la de los niños.",
    "da": "Mødet begynder på mandag klokken ni, og nøglerne ligger hos viceværten. Større grupper må møde "
    "før klokken otte ved indgangen på den anden side.",
    "pl": "Umowa została podpisana w środę, a klucze są już u dozorcy. Większe grupy muszą się zgłosić "
    "wcześniej, ponieważ wejście bywa zamknięte.",
    "cs": "Schůzka začíná v pondělí v devět hodin, přineste si prosím občanský průkaz. Větší skupiny se musí "
    "přihlásit dříve, klíče má správce.",
    "hu": "A könyvtár reggel nyolckor nyit, és este hatkor zár. Előre kell bejelentkezni, a kulcsok a "
    "gondnoknál vannak, aki csütörtökön szabadságon van.",
    "tr": "Toplantı pazartesi günü saat dokuzda başlıyor, anahtarlar kapıcıda. Büyük gruplar önceden "
    "bildirmeli, çünkü giriş öğleden sonra kapalı.",
    "ru": "Совещание начинается в понедельник в три часа. Договор аренды подписан.",
    "uk": "Зустріч починається в понеділок о дев'ятій, ключі у сторожа. Її перенесли ще вчора.",
    "el": "Η συνάντηση αρχίζει τη Δευτέρα στις εννέα το πρωί, τα κλειδιά τα έχει ο θυρωρός.",
    "he": "הפגישה מתחילה ביום שני בשעה תשע והמפתחות אצל השומר.",
}
PAGES = [
    *((codec, language) for codec in ("cp850", "cp437", "mac-roman") for language in ("de", "fr", "es")),
    *(("cp850", "da"), ("mac-roman", "da")),
    *(("cp852", language) for language in ("pl", "cs", "hu")),
    *(("cp857", "tr"), ("iso8859-5", "ru"), ("koi8-u", "uk"), ("cp737", "el"), ("cp862", "he")),
]


@pytest.mark.parametrize(("codec", "language"), PAGES)
@pytest.mark.parametrize("times", [1, 200])
def test_old_pages(codec: str, language: str, times: int) -> None:
    """Two sentences in a code page of old are enough; a long text is no harder."""
    text = "\r\n".join([LETTERS[language]] * times)
    data = text.encode(codec)
    assert data.decode(detect_encoding(data) or "") == text


@pytest.mark.parametrize(
    "text",
    [
        "id;price\r\n" + "".join(f"{n};{n} €\r\n" for n in range(300)),
        "".join(f"• item {n}\r\n" for n in range(300)),
        "“Yes,” he said — it’s the keeper’s “own” boat. " * 30,
        "Syntaxfehler in der »repertoire« Map-Definition: 7",
        "La sezione è stata rinominata più volte, può darsi.",
        "El tamaño de la página es demasiado grande.",
        "Indlæs yderligere moduler, præfiks mangler.",
        "Virheellinen pituus ”.scomm”-direktiiville.",
        "LES CLÉS ONT ÉTÉ REÇUES À L'ENTRÉE.",
        "Größe: 5 µm",
    ],
)
def test_windows_stays(text: str) -> None:
    """Signs, however often, and a few letters are no evidence of an old code page."""
    data = text.encode("cp1252")
    assert data.decode(detect_encoding(data) or "") == text


def test_a_frame_of_dos() -> None:
    """Frames drawn around the text of MS-DOS are read as such, and spoil no letter."""
    text = (
        "╔══════════════╗\r\n║ Schlüssel für ║\r\n║ Bürogebäude   ║\r\n╚══════════════╝\r\n" + LETTERS["de"]
    )
    data = text.encode("cp437")
    assert data.decode(detect_encoding(data) or "") == text


PRICES = "Das kostet 5 € – „sehr“ teuer"


class TestNames:
    @pytest.mark.parametrize(
        ("name", "codec", "text"),
        [
            ("iso-8859-1", "cp1252", PRICES),
            ("latin1", "cp1252", PRICES),
            ("iso-8859-9", "cp1254", "Fiyatı 5 € – „çok“ pahalı"),
            ("gb2312", "gb18030", "朱镕基总理说会议在北京举行"),
            ("shift_jis", "cp932", "①会議は月曜日の午後三時に始まります"),
            ("euc-kr", "cp949", "똠방각하 회의는 월요일에 시작합니다"),
            ("iso-8859-1", "utf-8", PRICES),
        ],
    )
    def test_what_is_meant(self, tmp_path: Path, name: str, codec: str, text: str) -> None:
        """Who names a standard and writes Windows' extension of it, or UTF-8, loses nothing."""
        page = f"<html><head><meta charset={name}></head><body><p>".encode() + text.encode(codec)
        path = tmp_path / "page"
        path.write_bytes(page)
        assert parsed_text(from_html.parse(path)) == text
        head = f"From: a@example.org\nSubject: Price\nContent-Type: text/plain; charset={name}\n\n".encode()
        path.write_bytes(head + text.encode(codec))
        assert text in parsed_text(from_eml.parse(path))
