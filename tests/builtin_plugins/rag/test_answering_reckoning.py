"""Questions that take counting or comparing are refused without a model, unless a sentence has done it."""

from __future__ import annotations

import pytest

from builtin_plugins.rag.answering.expectations import states_count
from tests.builtin_plugins.rag.answering import answer, passages

PEOPLE = "Name\tRole\tSalary\n" + "\n".join(f"Person {n}\tEngineer\t{3000 + 7 * n} EUR" for n in range(1, 30))
HEIGHTS = {
    "en": "The Rigi is a mountain above Lake Lucerne, 1798 m high. The Pilatus is 2128 m high.",
    "de": "Die Rigi ist ein Berg am Vierwaldstättersee und 1798 m hoch. Der Pilatus ist 2128 m hoch.",
    "fr": "Le Rigi culmine à 1798 mètres. Le Pilatus culmine à 2128 mètres.",
    "es": "El Rigi tiene 1798 metros de altura. El Pilatus tiene 2128 metros de altura.",
    "tr": "Rigi 1798 metre yüksekliğindedir. Pilatus 2128 metre yüksekliğindedir.",
    "ru": "Высота горы Риги 1798 метров. Высота горы Пилатус 2128 метров.",
    "zh": "瑞吉山海拔1798米。皮拉图斯山海拔2128米。",
}

REVENUE = "Revenue in 2018 was 4 million EUR. Revenue in 2019 was 5 million EUR."
TRAILS = "The valley trail is 12 km long. The ridge trail is 30 km long. The bridge is 10 km from town."
GARANTIE = "Die Garantie der Pumpe dauert 24 Monate. Das Jahr 2010 war gut. Ein Jahr hat 12 Monate."
PHONES = "The Aurora 3 has a price of 300 EUR. The Borealis 5 has a price of 450 EUR."
WARRANTY = (
    "The warranty of the pump is 24 months. Delivery of the pump takes three to five working days. "
    "The pump switches off at 80 degrees. The report of the pump must be submitted by Friday noon.\n\n"
    "The firm was founded in the year 1990. In the first week of every month, 20 people meet. "
    "The boiler was bought in 2010."
)
RAILWAY = "The Rigi railway is a cog railway. It carried more passengers than the Pilatus railway in 2019."
MARKET = "China es el país con mayor producción de tomates. España exportó 2 millones de tomates a otro país."
DATABASES = "Use PostgreSQL rather than SQLite when several people write. SQLite is a file."


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (PEOPLE, "Does Person 12 earn more than Person 13?"),
        (PEOPLE, "Who earns more, Person 12 or Person 13?"),
        (HEIGHTS["en"], "Is the Rigi higher than the Pilatus?"),
        (HEIGHTS["en"], "Which mountain is higher, the Rigi or the Pilatus?"),
        (HEIGHTS["de"], "Ist die Rigi höher als der Pilatus?"),
        (HEIGHTS["fr"], "Le Rigi est-il plus haut que le Pilatus ?"),
        (HEIGHTS["es"], "¿Es el Rigi más alto que el Pilatus?"),
        (HEIGHTS["tr"], "Rigi Pilatus'tan daha yüksek mi?"),
        (HEIGHTS["ru"], "Риги выше, чем Пилатус?"),
        (HEIGHTS["zh"], "瑞吉山比皮拉图斯山高吗？"),
        (REVENUE, "Was revenue in 2019 higher than in 2018?"),
        (TRAILS, "Is the valley trail longer than the ridge trail?"),
        (PHONES, "Does the Aurora 3 or the Borealis 5 have the higher price?"),
        (PHONES, "Welches Handy ist billiger, Aurora 3 oder Borealis 5?"),
        (PHONES, "Aurora 3 mü yoksa Borealis 5 mi daha ucuz?"),
        (PHONES, "Что дешевле, Aurora 3 или Borealis 5?"),
        ("Ann Weber was born in 1980. Bob Stone was born in 1975.", "Is Ann Weber older than Bob Stone?"),
        (
            "The Aurora 3 is rated 7. The Borealis 5 is rated 9.",
            "Is the Aurora 3 safer than the Borealis 5?",
        ),
    ],
)
def test_two_things_that_must_be_compared(text: str, question: str) -> None:
    """A sentence about one of two things is not an answer to which has more."""
    assert not answer(question, passages(text)).supported


@pytest.mark.parametrize(
    ("text", "question", "quoted"),
    [
        (PEOPLE, "What is the salary of Person 12?", "3084 EUR"),
        (HEIGHTS["en"], "How high is the Pilatus?", "2128 m"),
        (TRAILS, "Is the valley trail longer than 10 km?", "12 km"),
        (RAILWAY, "Did the Rigi railway carry more passengers than the Pilatus railway?", "carried more"),
        (MARKET, "¿Qué país produce más tomates?", "China"),
        (DATABASES, "Why use PostgreSQL rather than SQLite?", "when several people write"),
        (WARRANTY, "Is the warranty of the pump longer than a year?", "24 months"),
        (GARANTIE, "Dauert die Garantie der Pumpe länger als ein Jahr?", "24 Monate"),
        (WARRANTY, "Does delivery of the pump take longer than a week?", "three to five"),
        (WARRANTY, "Does delivery of the pump take longer than two weeks?", "three to five"),
        (WARRANTY, "When does the pump switch off, if it runs hotter than the boiler?", "switches off"),
        (WARRANTY, "Must the report of the pump be submitted earlier than Friday?", "Friday noon"),
    ],
)
def test_one_sentence_is_enough(text: str, question: str, quoted: str) -> None:
    """What one sentence compares or a bound asks for needs no second one."""
    assert quoted in answer(question, passages(text)).text


ORDERS = (
    "Order 1001 was cancelled on Monday. Order 1002 was shipped on Tuesday. "
    "Order 1003 was cancelled on Friday."
)
MOUNTAINS = (
    "The Rigi is a mountain 1798 m high. The Pilatus is a mountain 2128 m high. "
    "The Titlis is a mountain 3238 m high."
)
MONTHS = "Two orders were cancelled in May. Three orders were cancelled in June."


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (ORDERS, "How many orders were cancelled?"),
        ("Ann works in Bern. Bob works in Bern. Cid works in Basel.", "How many people work in Bern?"),
        ("Anna arbeitet in Bern. Beat arbeitet in Bern.", "Wie viele Personen arbeiten in Bern?"),
        (ORDERS.replace("Monday", "3 May").replace("Friday", "6 May"), "How many orders were cancelled?"),
        ("Ann complained at 9:30. Bob complained at 10:15.", "How many people complained?"),
        (MOUNTAINS, "Which mountain is the highest?"),
    ],
)
def test_things_that_must_be_counted(text: str, question: str) -> None:
    """Sentences about one thing each are not an answer to how many there are."""
    assert not answer(question, passages(text)).supported


@pytest.mark.parametrize(
    ("text", "question", "quoted"),
    [
        (ORDERS, "Which orders were cancelled?", "1003"),
        (f"In May, 12 orders were cancelled. {ORDERS}", "How many orders were cancelled?", "12 orders"),
        (MONTHS, "How many orders were cancelled?", "Three"),
        ("The tower is 30 m high. The old tower is 20 m high.", "How many metres high is the tower?", "30 m"),
        ("The team has 14 members. The team meets on Fridays.", "How many members does the team have?", "14"),
        (
            f"{MOUNTAINS} The Titlis is the highest mountain.",
            "Which mountain is the highest?",
            "Titlis is the",
        ),
    ],
)
def test_a_number_is_told(text: str, question: str, quoted: str) -> None:
    """A sentence that has a number answers how many there are."""
    assert quoted in answer(question, passages(text)).text


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (
            "Acme has thirteen employees. Acme's employees work in Bergen.",
            "How many employees does Acme have?",
        ),
        ("The league has eighteen clubs. The clubs meet in May.", "How many clubs does the league have?"),
        (
            "Die Firma hat fünf Mitarbeiter. Die Mitarbeiter sind in Bonn.",
            "Wie viele Mitarbeiter hat die Firma?",
        ),
        ("Şirketin otuz çalışanı var. Şirketin çalışanları Bursa'da oturur.", "Şirketin kaç çalışanı var?"),
        ("У фирмы двадцать сотрудников. Сотрудники фирмы сидят в Туле.", "Сколько сотрудников у фирмы?"),
        ("这个展览开放三十天。这个展览开放给学生。", "这个展览开放多少天？"),
        (
            "Berlin has ninety-six districts. Its districts elect mayors.",
            "How many districts does Berlin have?",
        ),
        (
            "The club has no employees. Employees of clubs may travel.",
            "How many employees does the club have?",
        ),
    ],
)
def test_a_number_in_words(text: str, question: str) -> None:
    """Numbers are written as words in many languages."""
    assert answer(question, passages(text)).supported


def test_words_that_are_numbers_elsewhere() -> None:
    """The Turkish "bin", a thousand, is no number in German or English."""
    assert not states_count("Wie viele Mitglieder gibt es?", "Ich bin Mitglied im Verein.", "mitglied")
    assert not states_count("How many members are there?", "A bin for members stands outside.", "member")
    assert states_count("Combien de membres ?", "Le club a cent membres.", "membr")


@pytest.mark.parametrize(
    ("before", "date", "question"),
    [
        (
            "Der Sommerball ist im Rathaus.",
            "Der Sommerball ist an einem Samstag im Juli.",
            "Wann ist der Sommerball?",
        ),
        ("La feria es en la plaza.", "La feria es un sábado de octubre.", "¿Cuándo es la feria?"),
        ("La fête a lieu sur la place.", "La fête a lieu un dimanche de juillet.", "Quand a lieu la fête?"),
        ("Ярмарка проходит в парке.", "Ярмарка проходит каждый сентябрь.", "Когда проходит ярмарка?"),
        ("Kitap fuarı parkta.", "Kitap fuarı ekim ayında cumartesi.", "Kitap fuarı ne zaman?"),
    ],
)
def test_a_date_in_words(before: str, date: str, question: str) -> None:
    """Months and weekdays are times in other languages too: the sentence beside them says nothing."""
    assert answer(question, passages(f"{before} {date}")).text == f"{date} [1]"


@pytest.mark.parametrize("word", ["more, ", "plus, ", "than ", "or ", "ten daha ", "比", "a", "1"])
def test_long_questions_take_no_longer(word: str) -> None:
    """The longest question that is accepted, and a sentence as long: neither keeps a process busy."""
    long = (word * 8_000)[:7_900]
    question, text = "How high is the Pilatus? ", "The Pilatus is 2128 m high. "
    assert answer(question + long, passages(text + long)).text


ARTICLES = "Article\tWeight\tDepth\nTent\t2.10 kg\t4 m\nStove\t0.29 kg\t1 m\nPole\t0.42 kg\t2 m"


@pytest.mark.parametrize(
    "question",
    [
        "Which article is the heaviest?",
        "Which article has the lightest weight?",
        "Welche article ist die schwerste?",
    ],
)
def test_the_first_of_rows_must_be_found(question: str) -> None:
    """No row says that it is."""
    assert not answer(question, passages(ARTICLES)).supported


LOG = """\
2025-10-10T13:55:36Z ERROR payment gateway timed out for order 8841
2025-10-10T13:56:01Z INFO worker-3 took job 17
2025-10-10T13:57:12Z ERROR disk full on node-2
2025-10-10T13:59:02Z ERROR payment gateway timed out for order 8850
"""
CANCELLED = """\
- คำสั่งซื้อ 1001 ถูกยกเลิกเมื่อวันจันทร์
- คำสั่งซื้อ 1002 จัดส่งเมื่อวันอังคาร
- คำสั่งซื้อ 1003 ถูกยกเลิกเมื่อวันศุกร์
"""
BRANCHES = "สาขา\tพนักงาน\tเปิดเมื่อ\nเชียงใหม่\t24\t2540\nภูเก็ต\t31\t2551\nขอนแก่น\t18\t2560"


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (LOG, "How many errors are there?"),
        (CANCELLED, "มีคำสั่งซื้อที่ถูกยกเลิกกี่รายการ"),
        (BRANCHES, "สาขาใดมีพนักงานมากที่สุด"),
    ],
)
def test_entries_that_must_be_counted_or_compared(text: str, question: str) -> None:
    """The times in a log's lines, and the numbers in a list's, are not how many there are."""
    assert not answer(question, passages(text)).supported


@pytest.mark.parametrize(
    ("text", "question", "quoted"),
    [
        (LOG, "Which disk was full?", "node-2"),
        (CANCELLED, "คำสั่งซื้อ 1002 จัดส่งวันไหน", "วันอังคาร"),
        (BRANCHES, "สาขาภูเก็ตมีพนักงานกี่คน", "31"),
    ],
)
def test_an_entry_that_is_asked_for(text: str, question: str, quoted: str) -> None:
    """One line of a log, one item or one row says it."""
    assert quoted in answer(question, passages(text)).text
