"""Words of every script are found again: whole identifiers, inflected words, scripts without spaces."""

from __future__ import annotations

import pytest

from builtin_plugins.vectors.text import InLanguage, TextIndex

FOUND = [
    ("Обсерватория была основана в Бергене.", "кто основал обсерваторию"),
    ("天文台建于1897年，位于卑尔根附近。", "卑尔根的天文台"),
    ("東京タワーは1958年に完成した。", "東京タワー"),
    ("서울타워는 1969년에 세워졌다.", "서울타워 언제"),
    ("หอดูดาวก่อตั้งขึ้นในปี พ.ศ. 2440", "หอดูดาวก่อตั้งเมื่อไร"),
    ("तारामंडल 1897 में स्थापित किया गया था।", "तारामंडल की स्थापना"),
    ("تأسس المرصد الفلكي عام 1897.", "مرصد فلكي"),
    ("Die Sternwarte steht in der Nähe von Köln.", "Sternwarte Koln"),
    ("Gözlemevi 1897'de Isparta'da kuruldu.", "gozlemevi isparta"),
    ("Đài thiên văn được thành lập năm 1897.", "đài thiên văn"),
    ("Το αστεροσκοπείο ιδρύθηκε το 1897.", "αστεροσκοπείου"),
    ("The pump CK-381 runs at 40 bar.", "ck381"),
    ("Set max_connections to 128.", "maxconnections"),
    ("Set max_connections to 128.", "connections"),
    ("Ｆｕｌｌ　ｗｉｄｔｈ ﬁne print", "full width fine"),
    ("The lan\u00adtern is lit at dusk.", "lantern"),
    ("The beacon stands on the cape.", "bea\u200bcon"),
    ("\u202bהמגדלור\u202c הוקם", "המגדלור"),
]


@pytest.mark.parametrize(("text", "question"), FOUND, ids=[question for _, question in FOUND])
def test_a_text_is_found_by_a_question_in_its_language(text: str, question: str) -> None:
    texts = list(dict.fromkeys(text for text, _ in FOUND))
    index = TextIndex()
    index.add(range(len(texts)), texts)
    found = index.search(question, 5)
    assert found.size > 0 and texts[found.labels[0]] == text


def test_accents_tell_words_apart_where_they_are_typed() -> None:
    index = TextIndex()
    index.add([0, 1], ["ma: but, however", "má: mother, mom"])
    assert set(index.search("ma", 5).labels) == {0, 1}
    assert index.search("má", 5).labels[0] == 1


def test_threads_prepare_words_together() -> None:
    """The stemmers keep state inside; texts of several threads don't mix."""
    from concurrent.futures import ThreadPoolExecutor

    from builtin_plugins.vectors.text import Words

    words = Words()
    texts = [f"обсерватории основанные {number}" for number in range(200)]
    expected = [Words().prepare(text) for text in texts]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(words.prepare, texts)) == expected


INFLECTED = [
    ("de", "Die Häuser wurden renoviert.", "renoviertes Haus"),
    ("es", "Los trenes salieron tarde.", "tren saliendo"),
    ("tr", "Kitaplar kütüphanede saklanıyor.", "kitabın kütüphanesi"),
    ("fr", "Les chevaux étaient fatigués.", "fatiguer"),
]


@pytest.mark.parametrize(("language", "text", "question"), INFLECTED)
def test_words_are_stemmed_by_the_language_of_their_text(language: str, text: str, question: str) -> None:
    """Beside texts of other languages; each has its own full match, and none is left out by another's."""
    index = TextIndex()
    index.add([0, 1], [InLanguage(text, language), "The pump of the station is oiled in May."])
    found = index.search(question, 5)
    assert found.labels.tolist() == [0] and found.scores[0] > 0.25 * found.full
    assert index.search("oiling pumps", 5).labels.tolist() == [1]


@pytest.mark.parametrize("run", ["1", "1a", "1-", "a.1", "é1_", "1:/"])
def test_hostile_text_takes_no_time(run: str) -> None:
    from builtin_plugins.vectors.text import Words

    assert Words().prepare(run * 100_000, "de")
