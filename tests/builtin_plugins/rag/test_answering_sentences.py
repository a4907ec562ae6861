"""Sentences that can be quoted alone, out of every kind of text."""

from __future__ import annotations

import pytest

from builtin_plugins.rag.answering.sentences import MAX_SENTENCE, split_sentences


def texts(text: str) -> list[str]:
    return [sentence.text for sentence in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. Smith met Mrs. Jones at 5 p.m. on Main St. today.", None),
        ("It costs 3.50 EUR. It weighs 1,250.5 kg.", ["It costs 3.50 EUR.", "It weighs 1,250.5 kg."]),
        ("See e.g. Fig. 3 and No. 7 for details.", None),
        ("The answer is no. Then we left.", ["The answer is no.", "Then we left."]),
        ("J. R. Tolkien wrote it. He was British.", ["J. R. Tolkien wrote it.", "He was British."]),
        ('He said "Stop!" Then he left.', ['He said "Stop!"', "Then he left."]),
        ("Das gilt z.B. Montags. Hier Dr. Yılmaz.", ["Das gilt z.B. Montags.", "Hier Dr. Yılmaz."]),
        ("İlk cümle. İkinci cümle. Şimdi üçüncü.", ["İlk cümle.", "İkinci cümle.", "Şimdi üçüncü."]),
        ("これは文です。次の文です。", ["これは文です。", "次の文です。"]),
        ("Really?! Yes... Maybe.", ["Really?!", "Yes...", "Maybe."]),
        ("Visit example.org for more. Bye.", ["Visit example.org for more.", "Bye."]),
    ],
)  # fmt: skip
def test_prose(text: str, expected: list[str] | None) -> None:
    """Ends are found; abbreviations, initials, decimals and addresses are none. None means: one sentence."""
    assert texts(text) == (expected or [text])


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("de", "Am 12. Mai 1912 begann es. Im 19. Jahrhundert nicht.", 2),
        ("de", "Unter Friedrich II. Arbeiter zu finden war schwer.", 1),
        ("de", "Er starb mit 37. Danach war Ruhe. Es blieben 20. Die anderen gingen.", 4),
        ("de", "Das war 1912. Böttger lebte noch.", 2),
        ("tr", "II. Mehmed geldi. Sonra 2. Dünya Savaşı çıktı.", 2),
        ("en", "He scored 12. Liverpool won under Henry VIII. Parliament met.", 3),
        (None, "He scored 12. Liverpool won.", 2),
        ("no such language", "He scored 12. Liverpool won.", 2),
    ],
)
def test_a_full_stop_makes_an_ordinal(language: str | None, text: str, expected: int) -> None:
    """Where a language writes ordinals so, unless the next word is one that only begins a sentence."""
    assert len(split_sentences(text, language)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Erlaubt sind z. B. Hunde und Katzen. Fische nicht.", 2),
        ("Der Verein heißt Turnverein Eichenhain e. V. und hat seinen Sitz in Aue.", 1),
        ("Die Frist beträgt i. d. R. Wochen. Danach wird geschlossen.", 2),
        ("Wir haben nur Plan b. Es gibt keinen anderen.", 2),
    ],
)
def test_abbreviations_with_spaces(text: str, expected: int) -> None:
    """Letters with full stops in a row end no sentence; one letter alone may."""
    assert len(split_sentences(text, "de")) == expected


def test_wrapped_lines_are_one_sentence() -> None:
    """Line breaks of a PDF's paragraph don't cut sentences; a blank line does."""
    text = "This paragraph was wrapped by the layout of a\npage and goes on here.\n\nAnother one"
    assert texts(text) == [
        "This paragraph was wrapped by the layout of a page and goes on here.",
        "Another one",
    ]


def test_list_items_stand_alone_without_their_marks() -> None:
    """Bullets and numbers separate items and are not part of them."""
    text = "Rules:\n- Be kind\n* Be brief\n1. Be early\n2) Be late\n• Be calm"
    assert texts(text) == ["Rules:", "Be kind", "Be brief", "Be early", "Be late", "Be calm"]


def test_table_rows_stay_whole() -> None:
    """Rows are one piece each and name their columns, fields of a record one together; rules are none."""
    text = "| Model | Price |\n|---|---|\n| X200 | 89.90 EUR |\nWeight: 1.2 kg\nColour: red. Matt"
    assert texts(text) == [
        "Model | Price",
        "Model: X200; Price: 89.90 EUR",
        "Weight: 1.2 kg; Colour: red.",
        "Matt",
    ]


def test_headings_are_known_as_such() -> None:
    """Markdown headings and short lines without an end are headings, sentences are not."""
    found = split_sentences("# Warranty\n\nIt lasts two years.\n\nReturns and repairs\n\nSend it back.")
    assert [(one.text, one.is_heading) for one in found] == [
        ("Warranty", True),
        ("It lasts two years.", False),
        ("Returns and repairs", True),
        ("Send it back.", False),
    ]


def test_nothing_is_longer_than_the_limit() -> None:
    """Text without punctuation is cut at spaces and loses nothing."""
    text = "word " * 500
    found = texts(text)
    assert max(map(len, found)) <= MAX_SENTENCE
    assert " ".join(found) == text.strip()


def test_places_point_into_the_text() -> None:
    """``start`` is where the sentence begins in the original."""
    text = "First one.  Second one.\n\n- Third item\nFourth: value"
    for one in split_sentences(text):
        assert text[one.start :].lstrip().startswith(one.text.split()[0])


@pytest.mark.parametrize("text", ["", " \n\n ", "---\n***", "|||", "\u00a0"])
def test_nothing_gives_nothing(text: str) -> None:
    """Empty text and mere rules hold no sentence."""
    assert texts(text) == []


def test_hostile_text_takes_no_time() -> None:
    """Runs of dots, spaces and brackets cost time in proportion to their length."""
    for run in (".", "a.", " ", "| ", "(", "x:", "\n.", "1."):
        assert sum(len(piece) for piece in texts(run * 50_000)) <= 4 * 50_000


def test_fields_of_a_record_stay_together() -> None:
    """A price without its name could not be quoted; another row is another record."""
    rows = "name: Anemometer\nprice_eur: 640\n\nname: Rain gauge\nprice_eur: 210"
    found = [sentence.text for sentence in split_sentences(rows)]
    assert found == ["name: Anemometer; price_eur: 640", "name: Rain gauge; price_eur: 210"]


TABLE = "Model\tPower\tWarranty\nAurora 2\t12 W\t2 years\nAurora 3\t15 W\t5 years"


@pytest.mark.parametrize(
    "text",
    [
        TABLE,
        "Our lamps.\n\n" + TABLE,
        "|Model|Power|Warranty|\n|---|---|---|\n|Aurora 2|12 W|2 years|\n|Aurora 3|15 W|5 years|",
    ],
)
def test_a_row_says_what_its_cells_mean(text: str) -> None:
    """A table's rows carry the names of its columns, and count as sentences."""
    found = split_sentences(text)
    assert [one.text for one in found[-2:]] == [
        "Model: Aurora 2; Power: 12 W; Warranty: 2 years",
        "Model: Aurora 3; Power: 15 W; Warranty: 5 years",
    ]
    assert not found[-1].is_heading
    assert text[found[-1].start :].lstrip("| ").startswith("Aurora 3")


def test_a_chunk_from_within_a_table_has_no_names() -> None:
    """The first row of a chunk that begins in mid-table names nothing."""
    assert texts("Ann Berg\tParis\nBob Cole\tRome")[1] == "Bob Cole Rome"
    assert texts("Aurora 2\t12 W\nAurora 3\t15 W")[1] == "Aurora 3 15 W"


def test_the_next_table_has_names_of_its_own() -> None:
    """A gap ends a table: its names don't label what follows."""
    assert texts(TABLE + "\n\nTown\tPeople\tArea\nBraga\t190,000\t183")[-1] == (
        "Town: Braga; People: 190,000; Area: 183"
    )


def test_a_wide_row_is_cut() -> None:
    """A row with many long cells keeps to the limit too."""
    row = "\t".join(f"value {n} " + "x" * 60 for n in range(20))
    assert max(map(len, texts("\t".join("abcdefghijklmnopqrst") + "\n" + row))) <= MAX_SENTENCE
