"""What is quoted as an answer, and when nothing is."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from builtin_plugins.extractive_answers.windows import LONGEST, SECOND
from builtin_plugins.rag.answering.words import content_stems, count_words
from builtin_plugins.rag.passages import Passage
from tests.builtin_plugins.extractive_answers.judging import judged, passages, quoted

WARRANTY = (
    "The X200 drill comes with a 24-month warranty. The warranty does not cover batteries. "
    "Repairs take about ten working days. Shipping is free within Europe."
)
LEAVE = "Employees get 25 days of annual leave. Sick leave longer than three days needs a certificate."


def test_the_quotation_is_a_part_of_its_passage() -> None:
    found = judged("How long is the warranty of the X200?", passages(LEAVE, WARRANTY))
    best = found.quotes[0]
    assert found.is_enough and best.passage == 1
    assert best.text in WARRANTY and "24-month warranty" in best.text
    assert WARRANTY[best.start :].startswith(best.text)


def test_a_window_is_bounded() -> None:
    text = " ".join(f"The warranty of drill {n} lasts {n} years." for n in range(200))
    found = judged("How long is the warranty of drill 77?", passages(text, text.replace("drill", "saw")))
    assert "drill 77" in found.quotes[0].text
    for quote, most in zip(found.quotes, (LONGEST, SECOND), strict=False):
        assert count_words(quote.text) <= most


def test_a_sentence_of_two_passages_is_quoted_once() -> None:
    first = "Intro words. The warranty lasts 24 months from the date of purchase."
    second = "The warranty lasts 24 months from the date of purchase. Bring the receipt."
    assert len(judged("How long does the warranty last?", passages(first, second)).quotes) == 1


def test_another_passage_that_is_nearly_as_good_is_quoted_too() -> None:
    lines = (
        "The warranty of the drill motor lasts 2 years.",
        "The warranty of the drill motor lasts 3 years.",
    )
    found = judged("How long does the warranty of the drill motor last?", passages(*lines))
    assert [one.text for one in found.quotes] == list(lines)


def test_what_a_pronoun_refers_to_is_quoted_with_it() -> None:
    text = (
        "Each autumn Ithena celebrates a festival of lanterns. Children carry lights through the lanes. "
        "The custom goes back to Jonas Falk, a teacher."
    )
    assert quoted("To which teacher does the festival of lanterns in Ithena go back?", text) == text


@pytest.mark.parametrize(
    "question",
    ["What is the capital of Mongolia?", "asdf qwer", "???", "", "the of and to", "Who won in 2018?"],
)
def test_nothing_about_it_is_refused(question: str) -> None:
    assert not judged(question, passages(WARRANTY, LEAVE)).is_enough


@pytest.mark.parametrize("texts", [[], [""], ["---", "  \n "]])
def test_no_text_is_refused(texts: list[str]) -> None:
    """No passages, and passages without a sentence, support nothing, with a model or without."""
    found = judged("How long is the warranty?", passages(*texts))
    assert not found.is_enough and not found.is_hopeful


PRICES = "The tube BG-4410 has a price of 3.85 euros. It is made of glass. Glass breaks easily."


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("What is the price of the tube BG-4410?", True),
        ("What is the price of the tube BG4410?", True),
        ("What is the price of the tube BG-9990?", False),
        ("What is the price of the tube of Contoso?", False),
    ],
)
def test_a_name_that_is_in_no_passage_is_refused(question: str, answers: bool) -> None:
    """A passage about another code or company is no answer, however near it is."""
    given = [replace(one, near=0.6) for one in passages(PRICES, LEAVE)]
    assert judged(question, given).is_enough is answers


def test_an_amount_is_no_name() -> None:
    text = "A hotel may cost up to EUR750 a night. Breakfast is included."
    assert "EUR750" in quoted("May a hotel cost EUR500 a night?", text)


def test_a_code_is_the_same_in_every_language() -> None:
    """Words of another language can't speak against an answer; a code that is another one does."""
    lines = ("E17: Der Motor ist zu heiß.", "E18: Der Akku ist leer.", "E19: Das Messer steht still.")
    found = [replace(one, near=0.5, language="de") for one in passages(*lines)]
    assert judged("What does the error E17 mean?", found, "en").is_enough
    assert not judged("What does the error E42 mean?", found, "en").is_enough


def test_the_words_of_the_questions_subject_alone_are_not_enough() -> None:
    """A passage that is no nearer than the others, and has half of the question, does not answer it."""
    near = [replace(one, near=0.35) for one in passages(WARRANTY, LEAVE, "Drills drill holes.")]
    assert not judged("Which colour has the case of the drill by Lindqvist?", near).is_enough


TABLE = "Model\tPower\tWarranty\nAurora 2\t12 W\t2 years\nAurora 3\t15 W\t5 years"


def test_a_row_says_what_its_cells_mean() -> None:
    assert "Model: Aurora 3; Power: 15 W; Warranty: 5 years" in quoted(
        "What is the warranty of the Aurora 3?", TABLE
    )


SETTINGS = """## queue_size (integer)

Sets how many jobs may wait. It needs a restart. The default is 40.

## retry_size (integer)

Sets how many tries are kept. It needs a restart. The default is 7.
"""


@pytest.mark.parametrize(("setting", "default"), [("queue_size", 40), ("retry_size", 7)])
def test_a_sentence_means_what_its_heading_names(setting: str, default: int) -> None:
    text = quoted(f"What is the default of {setting}?", SETTINGS)
    assert text.startswith(f"{setting} (integer): ") and f"The default is {default}." in text


@pytest.mark.parametrize("heading", ["", "## "])
def test_a_question_of_the_document_is_no_answer(heading: str) -> None:
    asked = "When is the dining car open?"
    assert quoted(asked, f"{heading}{asked}\n\nFrom 18:00 until midnight.") == "From 18:00 until midnight."


def test_a_question_alone_supports_nothing() -> None:
    assert not judged("When is the dining car open?", passages("When is the dining car open?")).is_enough


def test_a_line_without_a_full_stop_answers() -> None:
    assert quoted("When does the office close?", "The office closes at five") == "The office closes at five"


RECEIPT = """CORNER SHOP
-----------------------------
Coffee        $3.00
Lamp        $818.14
=============================
TOTAL       $821.14
_____________________________
Thank you for shopping with us
"""


def test_lines_of_marks_end_what_is_above_them() -> None:
    found = judged("What is the total?", passages(RECEIPT))
    assert found.is_enough
    assert found.quotes[0].text == "TOTAL $821.14"


def test_a_date_and_its_place_are_shown_together() -> None:
    text = "Annual meeting\nDate: 12 May 2026\nPlace: Town hall, room 4\nPlease register by the end of April."
    found = quoted("When is the annual meeting?", text)
    assert "12 May 2026" in found and "Town hall" in found


def test_a_date_without_a_label_and_its_place_are_no_headings() -> None:
    text = (
        "Annual meeting\n\nSaturday, 12 September 2026\nClubhouse, Garden Road 9\n10:30 a.m.\n\nCome early."
    )
    found = quoted("When and where is the annual meeting?", text)
    assert "12 September 2026" in found and "Garden Road 9" in found and "10:30" in found


def test_a_sentence_with_numbers_is_no_heading() -> None:
    text = (
        "The move to the new office is on 22 June.\nThe new address is Storgata 14, 0184 Oslo.\n\nBest\nJana"
    )
    assert "Storgata 14" in quoted("What is the new address?", text)


def test_a_record_is_quoted_by_itself() -> None:
    one = "Item: Projector\nPrice: 1,249.00\nSerial number: PX-8"
    other = "Item: Lamp\nPrice: 9.00\nSerial number: L-2"
    found = quoted("What is the serial number of the projector?", f"{one}\n\n{other}")
    assert found == one.replace("\n", "; ")


def test_a_policy_that_is_in_force() -> None:
    text = "Travel policy\n\nThis policy replaces the earlier one from 1 March 2026. Hotels cost 120 EUR."
    given = [replace(passages(text)[0], near=0.45), *passages("", LEAVE)[1:]]
    found = judged("Which policy is in force?", given)
    assert found.is_enough and "replaces the earlier one" in found.quotes[0].text


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("多少米高的塔？", "这座塔高五十米。它建于一九二〇年。每天早上九点开放。" * 8),
        ("พิพิธภัณฑ์เปิดกี่โมง", "พิพิธภัณฑ์เปิดเวลาเก้าโมงเช้า ปิดวันจันทร์ ค่าเข้าชมห้าสิบบาท " * 12),
    ],
)
def test_windows_without_spaces_are_not_cut_within_a_phrase(question: str, text: str) -> None:
    whole = set(text.replace("。", "。 ").split())
    shown = judged(question, passages(text)).quotes[0].text.replace("。", "。 ").split()
    assert shown and set(shown) <= whole


def test_confidence_grows_with_support() -> None:
    """The better the passage fits, and the further it is ahead, the surer the answer."""
    near = [replace(passages(WARRANTY)[0], near=one) for one in (0.2, 0.5, 0.9)]
    sure = [judged("How long is the warranty of the X200?", [one]).probability for one in near]
    assert sure == sorted(sure) and 0.0 < sure[0] < sure[-1] < 1.0


STATEMENT = """Statements of operations
(Dollars in millions)
\tYears ended December 31, 2022\tYears ended December 31, 2021
Revenues:
Sales of products\t$55,893\t$51,386
Net loss\t(4,935)\t(4,202)
"""


def test_a_row_below_years() -> None:
    years = [f"Years ended December 31, {year}" for year in (2022, 2021)]
    shown = f"Net loss {years[0]}: (4,935); {years[1]}: (4,202) (Dollars in millions)"
    assert quoted("What was the net loss in 2022?", STATEMENT) == shown


ROWS = "Flat | Rent (EUR) | Size\n---|---|---\nBirch 7 | 1,450 | 6\nHill 11 | 1,290 | 4\nQuay 2 | 1,720 | 7\n"


@pytest.mark.parametrize(
    ("question", "flat"),
    [
        ("Which flat has the highest rent?", "Quay 2"),
        ("Which flat has the lowest rent?", "Hill 11"),
        ("Welche Flat hat den höchsten Rent?", "Quay 2"),
    ],
)
def test_the_row_with_the_highest_value(question: str, flat: str) -> None:
    assert f"Flat: {flat};" in judged(question, passages(ROWS)).quotes[0].text


def test_the_row_with_the_highest_value_of_a_table_in_several_passages() -> None:
    """The best passage has only some of the rows, and others have some of them, too."""
    more = ROWS.replace("Quay 2 | 1,720", "Mill 3 | 1,980") + "Moor 5 | 1,300 | 5\n"
    first, second = passages(ROWS, more)
    found = judged(
        "Which flat has the highest rent?", [first, replace(second, document_id=first.document_id)]
    )
    assert "Flat: Mill 3;" in found.quotes[0].text
    apart = judged("Which flat has the highest rent?", [first, second])
    assert "Flat: Quay 2;" in apart.quotes[0].text


def test_the_row_of_the_winner() -> None:
    text = "# Photo contest\n\n| Name | Rank |\n|---|---|\n| Jonas | 2 |\n| Lena | 1 |\n\nNext: June."
    assert "Name: Lena; Rank: 1" in judged("Who won the photo contest?", passages(text)).quotes[0].text


def test_rows_that_share_the_highest_value_are_not_chosen_from() -> None:
    same = ROWS.replace("1,720", "1,450")
    found = judged("Which flat has the highest rent?", passages(same)).quotes[0].text
    assert found == judged("Which flat has a rent?", passages(same)).quotes[0].text


def test_may_is_a_month_where_it_is_written_so() -> None:
    rows = "Month | Sold | Left\n---|---|---\nMarch | 48 | 9\nMay | 61 | 7\n"
    assert "Month: May; Sold: 61" in judged("How many were sold in May?", passages(rows)).quotes[0].text
    assert "sold" in content_stems("May I ask what was sold?") and "may" not in content_stems("May I ask?")


SHOP = """PAPER SHOP
2026-03-14   10:42   Till 3
------------------------
Receipt no.
T-5519
------------------------
Notebook             9.50
Pens                 4.40
TOTAL               13.90
Mastercard **** 4417
Exchange until 2026-04-14
"""


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("When was the notebook bought?", "2026-03-14 10:42 Till 3"),
        ("Which card was used to pay?", "Mastercard **** 4417"),
        ("What are the last four digits of the card for the notebook?", "Mastercard **** 4417"),
        ("What is the receipt number of the paper shop?", "Receipt no. T-5519"),
        ("How much was the paper shop?", "TOTAL 13.90"),
    ],
)
def test_values_of_a_receipt(question: str, value: str) -> None:
    """They share no word with the question, or the label is on the line above."""
    assert quoted(question, SHOP, LEAVE) == value


@pytest.mark.parametrize(
    "question",
    [
        "Which card was used to pay the ferry?",
        "What is the IBAN of the paper shop?",
        "What is the passport number of the paper shop's owner Ana?",
        "When was the certificate of leave written?",
    ],
)
def test_a_value_of_something_else_is_no_answer(question: str) -> None:
    found = judged(question, passages(SHOP, LEAVE))
    assert not found.is_enough or "2026" not in found.quotes[0].text


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("Which card was used to pay?", f"Number: {'x' * 60}"),
        ("Which card was used to pay?", f"Number {'## ' * 700}a"),
        ("Which card was used to pay?", "visa " * 1200),
        ("What is the invoice number of the drill?", f"Invoice {'.' * 2000} a"),
        ("What is the invoice number of the drill?", f"Invoice{' .' * 1000} a"),
        ("What is the invoice number of the drill?", "a" * 4000),
        ("How much was the drill?", f"{'total-' * 300}{'1' * 600}"),
        ("How much was the drill?", "1" * 2000),
        ("When was the drill bought?", "1," * 1000),
        (f"{'When was the date of the ' * 300}drill?", "drill"),
        (f"{'what did ' * 850}the drill?", "drill"),
    ],
)
def test_hostile_lines_take_no_time(question: str, line: str) -> None:
    """Lines of stars and dots are ordinary; whoever writes the others must not hold up a question."""
    text = f"{WARRANTY} It costs 9.50 EUR.\n\n{line}\n"
    before = time.process_time()
    judged(question, passages(text))
    assert time.process_time() - before < 1.0


BILL = """Northern Power
Invoice 2026-55817
22 February 2026
Used: 312 kWh
Please pay by
15 March 2026
104.30 EUR"""


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("By when must the power be paid?", "Please pay by 15 March 2026"),
        ("When was the invoice for the power written?", "22 February 2026"),
        ("How many kilowatt hours did we use?", "Used: 312 kWh"),
        ("Wie lautet die Rechnungsnummer?", "Rechnung Nr. W-1093"),
    ],
)
def test_values_of_an_invoice(question: str, value: str) -> None:
    assert quoted(question, BILL, "Werkstatt Kern\nRechnung Nr. W-1093\nBremsen 412,00") == value


def test_a_value_in_another_language_is_not_taken_for_that_of_the_subject() -> None:
    """The words of a question in French can't tell whose card it is."""
    drug = SHOP.replace("Notebook", "Syrup").replace("4417", "6032")
    given = [replace(one, language="en", near=0.5) for one in passages(drug, SHOP)]
    found = judged("Quelle carte a payé le cahier ?", given, "fr")
    assert [one.text for one in found.quotes] != ["Mastercard **** 6032"]


def test_an_iban_is_that_of_the_text_about_the_subject() -> None:
    texts = [
        f"{name}\nIBAN {iban}"
        for name, iban in (("Berg", "AT61 1904 3002 3457 3201"), ("Holt", "NO93 8601 1117 947"))
    ]
    assert "NO93" in quoted("What is Holt's IBAN?", *texts)


FLATS = "Flat | Rent (EUR) | Rooms\n---|---|---\nBirch 7 | 1,450 | 6\nHill 11 | 1,290 | 7\n"


@pytest.mark.parametrize(
    ("question", "flat"),
    [("Which flat is the most expensive?", "Birch 7"), ("Welcher Flat ist am günstigsten?", "Hill 11")],
)
def test_a_column_that_is_meant_without_its_name(question: str, flat: str) -> None:
    assert f"Flat: {flat};" in judged(question, passages(FLATS)).quotes[0].text


def test_who_came_first_is_known_from_the_ranks() -> None:
    ranks = "# Chess\n\n| Name | Place |\n|---|---|\n| Ivy | 2 |\n| Tom | 1 |"
    assert "Name: Tom; Place: 1" in quoted("Who came first in the chess tournament?", ranks)


def report_pages(*texts: str) -> list[Passage]:
    """Passages on pages 39, 55, … of a document whose name the questions have."""
    return [
        Passage(text, "cordell-2025.pdf", 0.6 - n / 100, str(n), "report", page=39 + 16 * n)
        for n, text in enumerate(texts)
    ]


def test_a_footer_with_its_page_is_not_quoted() -> None:
    """It has the company's name and the year, as a question does."""
    first = "We sold more pumps than before.\nCordell Inc. | 2025 report | 31"
    second = "Prices of pumps in 2024 rose by 2 percent.\nPumps: 47 kinds.\nCordell Inc. | 2025 report | 47"
    found = judged("What did Cordell report of pumps in 2025?", report_pages(first, second))
    text = " ".join(one.text for one in found.quotes)
    assert found.is_enough and "Cordell Inc." not in text and "pumps" in text.lower()


def test_what_differs_by_other_numbers_than_pages_is_no_footer() -> None:
    rows = ("Cordell paid 40 dollars for a pump.", "Cordell paid 47 dollars for a pump.")
    found = judged("What did Cordell pay for a pump?", report_pages(*rows))
    assert [one.text for one in found.quotes] == list(rows)


def test_a_question_for_a_number_is_answered_by_one() -> None:
    talk = "Employees of the yard learn a trade from one another, and employees teach what employees know. "
    number = "At the end of the year, the yard had 415 employees."
    assert number in quoted("How many employees are there?", 3 * talk, number)


def test_a_question_for_a_person_is_answered_by_a_name() -> None:
    talk = "Those who audit the yard audit what the yard says of itself, and audits of it follow rules. "
    name = "Since 2009, audits of the yard are by Ernst Lindqvist, as agreed."
    assert name in quoted("Who audits the yard?", 3 * talk, name)


def test_a_row_that_is_asked_for_is_quoted() -> None:
    text = (
        "The effective tax rate was lower than the statutory rate, as the effective tax rate of earnings "
        "from abroad is lower, and as credits for research were granted to the company.\n\n"
        "\t2025\t2024\nStatutory rate\t21.0%\t21.0%\nEffective tax rate\t15.6%\t24.1%"
    )
    assert "15.6%" in quoted("What is the effective tax rate?", text)
