"""Written forms become the words of their language, and nothing is lost."""

from __future__ import annotations

import pytest

from builtin_plugins.speech.text.normalizing import Normalizer


@pytest.mark.parametrize(
    ("language", "written", "said"),
    [
        ("en", "On 3 May it costs $12.50.", "On the third of May it costs twelve dollars and fifty cents."),
        ("en", "May 3, 2026", "May third, two thousand and twenty-six"),
        ("en", "2026-05-03", "May third, twenty twenty-six"),
        ("en", "€1, $12 and £0.50", "one euro, twelve dollars and zero pounds sterling and fifty pence"),
        ("en", "¥300", "three hundred Japanese yen"),
        ("de", "Am 3. Mai um 7.30 Uhr", "Am dritten Mai um sieben Uhr dreißig"),
        ("de", "Der 3. Mai, 12,50 €", "Der dritte Mai, zwölf Euro fünfzig"),
        ("de", "Am 03.05.2026", "Am dritten Mai zweitausendsechsundzwanzig"),
        (
            "de",
            "1.234,5 km sind 20 %",
            "eintausendzweihundertvierunddreißig Komma fünf km sind zwanzig Prozent",
        ),
        ("tr", "Saat 7.30'da 12 tane", "Saat yedi otuz'da on iki tane"),
        ("tr", "%1,5 ve 0,05", "yüzde bir virgül beş ve sıfır virgül sıfır beş"),
        ("tr", "2026 yılında 12,50 ₺", "iki bin yirmi altı yılında on iki Türk lirası elli"),
        ("tr", "61.999", "altmış bir bin dokuz yüz doksan dokuz"),
        ("it", "7,25 e 12", "sette virgola due cinque e dodici"),
        ("fr", "1,5", "un virgule cinq"),
        ("en", "Call 0171 555 or see v2.1, AB-12, 1.2.3", "Call 0171 555 or see v2.1, AB-12, 1.2.3"),
    ],
)
def test_said(language: str, written: str, said: str) -> None:
    """Figures, dates and abbreviations become words; numbers that name something stay as they are."""
    assert Normalizer(language)(written) == said


@pytest.mark.parametrize("language", ["tr", "en", "de", "fr", "es", "it", "pt", "nl", "ru", "ja", "ko"])
@pytest.mark.parametrize("number", ["7,30", "7.30", "0,05", "1,5", "12", "999", "2026", "1000000"])
def test_no_number_is_lost(language: str, number: str) -> None:
    said = Normalizer(language)(f"x {number} y")
    assert len(said.split()) >= 3, said
