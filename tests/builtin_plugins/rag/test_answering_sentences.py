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
        ("Role: Clerk; Name: S. Oduya", None),
        ("Siehe S. 12 im Anhang. Name: P. Lind", ["Siehe S. 12 im Anhang.", "Name: P. Lind"]),
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Run it:\n\n```sh\nlogsift app.log\n```\n\nIt is free.",
            ["Run it:", "logsift app.log", "It is free."],
        ),
        ("logsift app.log\n```\nIt is free.\n```py\nx\n```", ["logsift app.log", "It is free.", "x"]),
        ("Write ```x``` for code.", ["Write ```x``` for code."]),
        ("1. Run:\n\n    ```sh\n    logsift app.log\n    ```", ["Run:", "logsift app.log"]),
        ("~~~sh\nlogsift app.log\n~~~\nIt is free.", ["logsift app.log", "It is free."]),
        ("````md\n```sh\nlogsift a\n```\n````", ["```sh", "logsift a", "```"]),
    ],
)
def test_code_in_markdown(text: str, expected: list[str]) -> None:
    """Its lines head nothing and its fences are not quoted; the first fence may end code from before."""
    found = split_sentences(text)
    assert [one.text for one in found] == expected and not any(one.is_heading for one in found)
    assert all(text.startswith(one.text, one.start) for one in found)


@pytest.mark.parametrize("rule", ["~~~~~~~~~~", "=========="])
@pytest.mark.parametrize("above", ["", "{rule}\n"])
def test_titles_between_rules(above: str, rule: str) -> None:
    """In reStructuredText, a rule below a title marks it, or one on either side: what follows is prose."""
    prose = "The harbour master keeps the keys of the harbour and\ngives them away."
    section = f"{above.format(rule=rule)}Installing\n{rule}\n\n{prose}\n\n"
    found = split_sentences(section * 2)
    assert [(one.text, one.is_heading) for one in found] == [
        ("Installing", True),
        (prose.replace("\n", " "), False),
    ] * 2


def test_records_of_the_same_fields() -> None:
    rows = ["No: 1; Clerk: S. Oduya", "No: 2; Clerk: K. Lind"]
    assert texts("\n".join(rows)) == rows


def test_wrapped_lines_are_one_sentence() -> None:
    text = "This paragraph was wrapped by the layout of a\npage and goes on here.\n\nAnother one"
    assert texts(text) == [
        "This paragraph was wrapped by the layout of a page and goes on here.",
        "Another one",
    ]


def test_list_items_stand_alone_without_their_marks() -> None:
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
    found = split_sentences("# Warranty\n\nIt lasts two years.\n\nReturns and repairs\n\nSend it back.")
    assert [(one.text, one.is_heading) for one in found] == [
        ("Warranty", True),
        ("It lasts two years.", False),
        ("Returns and repairs", True),
        ("Send it back.", False),
    ]


def test_nothing_is_longer_than_the_limit() -> None:
    text = "word " * 500
    found = texts(text)
    assert max(map(len, found)) <= MAX_SENTENCE
    assert " ".join(found) == text.strip()


def test_places_point_into_the_text() -> None:
    text = "First one.  Second one.\n\n- Third item\nFourth: value"
    for one in split_sentences(text):
        assert text[one.start :].lstrip().startswith(one.text.split()[0])


@pytest.mark.parametrize("text", ["", " \n\n ", "---\n***", "|||", "\u00a0"])
def test_nothing_gives_nothing(text: str) -> None:
    """Empty text and mere rules hold no sentence."""
    assert texts(text) == []


def test_hostile_text_takes_no_time() -> None:
    for run in (".", "a.", " ", "| ", "(", "x:", "\n.", "1."):
        assert sum(len(piece) for piece in texts(run * 50_000)) <= 4 * 50_000


def test_fields_of_a_record_stay_together() -> None:
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
    found = split_sentences(text)
    assert [one.text for one in found[-2:]] == [
        "Model: Aurora 2; Power: 12 W; Warranty: 2 years",
        "Model: Aurora 3; Power: 15 W; Warranty: 5 years",
    ]
    assert not found[-1].is_heading
    assert text[found[-1].start :].lstrip("| ").startswith("Aurora 3")


def test_a_chunk_from_within_a_table_has_no_names() -> None:
    assert texts("Ann Berg\tParis\nBob Cole\tRome")[1] == "Bob Cole Rome"
    assert texts("Aurora 2\t12 W\nAurora 3\t15 W")[1] == "Aurora 3 15 W"


def test_the_next_table_has_names_of_its_own() -> None:
    assert texts(TABLE + "\n\nTown\tPeople\tArea\nBraga\t190,000\t183")[-1] == (
        "Town: Braga; People: 190,000; Area: 183"
    )


def test_a_wide_row_is_cut() -> None:
    row = "\t".join(f"value {n} " + "x" * 60 for n in range(20))
    assert max(map(len, texts("\t".join("abcdefghijklmnopqrst") + "\n" + row))) <= MAX_SENTENCE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("दिल्ली राजधानी है। यह यमुना पर है।वहाँ किला है।", ["दिल्ली राजधानी है।", "यह यमुना पर है।", "वहाँ किला है।"]),
        ("उसने कहा “चलो।” फिर वह गया॥ १ ॥ अंत।", ["उसने कहा “चलो।”", "फिर वह गया॥ १ ॥", "अंत।"]),
        ("دہلی بھارت کا دارالحکومت ہے۔ یہ دریا پر ہے۔", ["دہلی بھارت کا دارالحکومت ہے۔", "یہ دریا پر ہے۔"]),
        ("یہ بی۔بی۔سی کی خبر ہے۔ ختم۔", ["یہ بی۔بی۔سی کی خبر ہے۔", "ختم۔"]),
        ("متى يصل القطار؟ يصل ظهرا.", ["متى يصل القطار؟", "يصل ظهرا."]),
        ("አዲስ አበባ ዋና ከተማ ናት። ሰላም ነው።", ["አዲስ አበባ ዋና ከተማ ናት።", "ሰላም ነው።"]),
        ("თბილისი დედაქალაქია. ის დიდია.", ["თბილისი დედაქალაქია.", "ის დიდია."]),
        ("Երևանը մայրաքաղաքն է։ Այն մեծ է։", ["Երևանը մայրաքաղաքն է։", "Այն մեծ է։"]),
        ("ភ្នំពេញជារដ្ឋធានី។ វាធំ។", ["ភ្នំពេញជារដ្ឋធានី។", "វាធំ។"]),
        ("ရန်ကုန်သည်မြို့ဖြစ်သည်။ ကြီးသည်။", ["ရန်ကုန်သည်မြို့ဖြစ်သည်။", "ကြီးသည်။"]),
        ("ལྷ་ས་བོད་ཀྱི་རྒྱལ་ས་ཡིན། །དེ་ཆེན་པོ་ཡིན། ཡག་པོ།", ["ལྷ་ས་བོད་ཀྱི་རྒྱལ་ས་ཡིན། །", "དེ་ཆེན་པོ་ཡིན།", "ཡག་པོ།"]),
        ("彼は「はい。」と言った。", ["彼は「はい。」", "と言った。"]),
        ("เปิดเมื่อปีพ.ศ. 2505 เวลา 18.00น. ทุกวัน", None),
    ],
)  # fmt: skip
def test_prose_of_other_scripts(text: str, expected: list[str] | None) -> None:
    """Each script's own marks end sentences; a full stop after few Thai letters is of an abbreviation."""
    assert texts(text) == (expected or [text])


def test_a_mark_of_another_script_ends_a_line() -> None:
    """The next line is not joined to a sentence that has ended, and short ones are no headings."""
    line = "दिल्ली भारत की राजधानी है और यमुना नदी के किनारे पर बसा हुआ शहर है।"
    found = split_sentences(f"{line}\nयह बड़ा है।")
    assert [(one.text, one.is_heading) for one in found] == [(line, False), ("यह बड़ा है।", False)]


@pytest.mark.parametrize(
    "run", ["।", "؟", "؟!", "\u0964 ", "\u0f0d ", "\u0f0d \u0f0da", "।1", "। 1", "۔۔", "พ.", "é."]
)
def test_hostile_marks_take_no_time(run: str) -> None:
    assert sum(len(piece) for piece in texts(run * 50_000)) <= 4 * 50_000


@pytest.mark.parametrize(
    "question",
    [
        *("When does it open?", "いつ開きますか？", "متى يفتح؟", "[12:01] Anna: Is it open?", "Is it open?!"),
        *("Πότε ανοίγει;", "Πότε ανοίγει\u037e", "いつ開きますか。"),
    ],
)
def test_a_question_on_its_own_line_is_a_heading(question: str) -> None:
    alone = split_sentences(f"{question}\n\nAt nine.")
    assert [one.is_heading for one in alone] == [True, False]
    assert not any(one.is_heading for one in split_sentences(f"It is old. {question} At nine."))
    assert not split_sentences(f"It is old. {question}")[-1].is_heading


@pytest.mark.parametrize("statement", ["Take α; leave β;", "while (open);", "ここは静か。"])
def test_what_only_looks_like_a_question(statement: str) -> None:
    """A semicolon after a formula or in code asks nothing, nor does a word that happens to end in か."""
    assert not split_sentences(f"{statement}\n\nAt nine.")[0].is_heading


def test_a_greek_question_ends_at_its_mark() -> None:
    """What follows it in its line is its own sentence; the semicolon of a formula stays inside."""
    assert texts("Πότε ανοίγει; Στις εννέα.") == ["Πότε ανοίγει;", "Στις εννέα."]
    assert texts("Take α; Leave β.") == ["Take α; Leave β."]


def test_places_are_those_of_the_first_letters() -> None:
    text = "- It is old. It is red.\n\nIt is tall."
    assert [text[one.start :][:5] for one in split_sentences(text)] == ["It is"] * 3


def test_a_long_question_is_no_heading() -> None:
    assert not split_sentences(f"Did you know that {'very ' * 20}old bridges sing?\n\nYes.")[0].is_heading


LOGS = [
    '10.0.0.7 - - [10/Oct/2025:13:55:36 +0000] "GET /health HTTP/1.1" 200 612',
    "2025/10/10 13:55:36 [error] 31#31: *7 upstream timed out while reading the header",
    "2025-10-10T13:55:36.120Z worker-3 took the job 8841 from the queue of the night",
    "[2025-10-10 13:55:36] production the queue of the night was emptied by worker-3",
    "Oct  7 13:55:36 web1 kernel: Out of memory, killed process 4242 (java) of user 7",
    "[Fri Oct 10 13:55:36 2025] Out of memory, killed process 4242 (java) of user www",
    "[  512.331842] Out of memory, killed process 4242 (java), total memory 2048000kB",
    "13:55:36.120 the worker took the job 8841 from the queue of the night and slept",
    "1760104536 the worker took the job 8841 from the queue of the night and slept on",
    "I1010 13:55:36.120000 1 controller.go] took the job 8841 from the queue of night",
    "ERROR: the worker left the job 8841 in the queue of the night and went to sleep",
    "[warn] the worker left the job 8841 in the queue of the night and went to sleep",
    '{"level": "info", "text": "the worker left the job 8841 in the queue of night"}',
    'time="2025-10-10" level=info text="the worker left the job 8841 in the queue"',
]


@pytest.mark.parametrize("line", LOGS)
def test_lines_of_a_log_stay_apart(line: str) -> None:
    """They begin with a time, an address or a level, or more. What a trace adds belongs to its line."""
    found = [one.start for one in split_sentences(f"{line}\n{line}\n    at the gate\n{line}")]
    assert found == [0, len(line) + 1, 2 * (len(line) + 1) + len("    at the gate\n")]


def test_lines_of_several_logs_stay_apart() -> None:
    assert len(texts("\n".join(LOGS[:7]))) == len(LOGS[:7])


def test_lines_that_begin_otherwise_are_joined() -> None:
    text = "The bridge across the river was opened for the public on\n2025-10-10 by the mayor of the town"
    assert texts(text) == [text.replace("\n", " ")]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("de", "Die Kosten lt. Satzung trägt Dr. med. Beck. Er wohnt in der Hauptstr. 5. Sie hilft.", 3),
        ("es", "La Sra. López llegó. Los EE. UU. ganaron.", 2),
        ("es", "Bolivia se quedó sin salida al mar. El puerto es de Chile.", 2),
        ("fr", "Le vent vient de l'est. Il est froid.", 2),
        ("en", "On Mar. 5, the mill opened, est. 1897. It is red.", 2),
        ("en", "See p. 5 and vol. 2. It opened in May. Orders came.", 3),
        ("nl", "De firma Bakker B.V. Amsterdam levert de kisten. Zij kosten 3.5. Dat is veel.", 3),
        ("ru", "Он сдаёт отчёт раз в год, т.е. Иванов ждёт. Плата не берётся.", 2),
        ("fr", "Le contrat lie Mme Aubert et M. Leduc. Il dure un an.", 2),
        ("ru", "Он живёт в г. Москве на ул. Ленина, д. 14. Плата составляет 45 тыс. руб. в месяц.", 2),
        ("hi", "डॉ. जोशी आईं। शुल्क 50.5 रु. है।", 2),
    ],
)
def test_what_languages_shorten(language: str, text: str, expected: int) -> None:
    """A full stop after an abbreviation cuts no sentence in halves."""
    assert len(split_sentences(text, language)) == expected


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "The case weighs 5 kg. Batteries are included."),
        ("nl", "De koffer weegt 5 kg. Batterijen zijn inbegrepen."),
        ("ru", "В упаковке 20 шт. Цена указана на сайте."),
        ("en", "We repair TVs. Customers bring them along."),
        ("de", "Wir vermieten LKWs. Kunden holen sie ab."),
        ("cs", "Výrobek vstupuje na trh. Zákazníci čekají."),
        ("hr", "Popeli su se na vrh. Pogled je lijep."),
    ],
)
def test_what_only_looks_like_an_abbreviation(language: str, text: str) -> None:
    """Neither units nor plurals of abbreviations have a period, nor Slavic words whose vowel is r or l."""
    assert len(split_sentences(text, language)) == 2


STEPS = "1. Unplug the grinder\n2. Lift off the hopper\n3. Brush the burrs"
HOTEL = "Breakfast from 7 to 10\nParking 12 euros per night\nCheck-out until 11:00"
SETTINGS = "max_connections = 100\nidle_timeout = 45\nlog.level=debug"


@pytest.mark.parametrize("lines", [STEPS, HOTEL, SETTINGS, "- 200 g flour", "* 2 eggs\n\n* salt"])
@pytest.mark.parametrize("after", ["", "\n\nNever use water here."])
def test_lines_of_a_list_are_no_headings(lines: str, after: str) -> None:
    """Items, settings and three short lines in a row say something themselves, each by itself."""
    found = split_sentences(lines + after)
    assert not any(one.is_heading for one in found)
    assert len(found) == sum(line != "" for line in (lines + after).splitlines())


@pytest.mark.parametrize(
    "heading", ["1. Subject", "a) Subject", "Part one\nSubject", "# Part one\n## Subject"]
)
def test_what_a_paragraph_is_under_is_a_heading(heading: str) -> None:
    *above, below = split_sentences(f"{heading}\nThe supplier delivers tubes of glass to the buyer.")
    assert above and all(one.is_heading for one in above)
    assert not below.is_heading


def test_a_line_without_a_full_stop_may_be_a_sentence_in_thai() -> None:
    title, fee = "คู่มือผู้พักอาศัย", "ค่าส่วนกลางเดือนละ 1,850 บาท ชำระภายในวันที่ 5"
    found = split_sentences(f"{title}\n\n{fee}\n\nห้ามเลี้ยงสัตว์ในห้องพัก ที่จอดรถอยู่ชั้นใต้ดิน")
    assert [one.is_heading for one in found] == [True, False, False]
    assert found[1].text == fee


@pytest.mark.parametrize("text", ["{0}\n{1}", "{0}\n\n{1}", "{1}\n\n{0}\n{1}"])
@pytest.mark.parametrize("title", ["Part II: the drums", "Chapter 3: Storage"])
def test_a_numbered_title_may_contain_a_colon(title: str, text: str) -> None:
    prose = "The drums stay in the cellar until the spring."
    found = split_sentences(text.format(title, prose))
    assert [one.text for one in found if one.is_heading] == [title]
    assert found[-1].text == prose


@pytest.mark.parametrize(
    "text",
    [
        "Weight: 2 kg\n\nThe drill has a strong motor and a case.",
        "Author: Anna Berger\n\nThe drill has a strong motor and a case.",
        "URL: Example\n\nThe drill has a strong motor and a case.",
        "Status: Open\n\nOwner: Ann\n\nThe drill has a strong motor and a case.",
        "Status: Open\n\nOwner: Ann",
        "Tools:\n- Drill: Aurora\n- Saw: Borealis\n\nThe drill has a strong motor and a case.",
    ],
)
def test_a_field_is_no_title(text: str) -> None:
    """Its name has no number, its value has one, it is beside other fields, or it is an item."""
    assert not any(one.is_heading and ": " in one.text for one in split_sentences(text))


THAI = [
    "ค่าส่วนกลางเดือนละ 1,850 บาท ชำระภายในวันที่ 5 ของทุกเดือนที่สำนักงานนิติบุคคลชั้น 1",
    "ห้ามเลี้ยงสัตว์ทุกชนิดในห้องพัก ผู้ฝ่าฝืนต้องชำระค่าปรับครั้งละ 2,000 บาท ตามระเบียบของอาคาร",
    "สระว่ายน้ำเปิดทุกวัน เวลา 6.00 ถึง 21.00 ยกเว้นวันจันทร์ซึ่งปิดเพื่อทำความสะอาดและตรวจสอบระบบน้ำ",
    "ที่จอดรถอยู่ชั้นใต้ดิน แต่ละห้องจอดได้หนึ่งคัน ผู้มาติดต่อจอดได้ไม่เกินสองชั่วโมงที่ลานด้านหน้าอาคาร",
]


def test_lines_of_thai_do_not_run_together() -> None:
    """No mark ends its sentences, so that a long piece is cut: between lines, else at a space."""
    assert texts("\n".join(THAI)) == THAI
    long = texts(" ".join(THAI))
    assert " ".join(long) == " ".join(THAI)
    assert max(map(len, long)) <= 150


def test_fields_of_prose_are_no_record() -> None:
    text = "E1: The tank is empty. Fill it with clean water.\nE2: The door is open. Press it shut."
    assert texts(text) == [
        "E1: The tank is empty.",
        "Fill it with clean water.",
        "E2: The door is open.",
        "Press it shut.",
    ]


def test_invisible_characters_part_nothing() -> None:
    """Soft hyphens and marks of direction are left out; places are those of the original."""
    text = (
        "\u200fThe lan\u00adtern is pol\u00adished.\u200e The light\u200bhouse \u202eis\u202c old."
        "\ufeff It shines."
    )
    found = split_sentences(text)
    assert [one.text for one in found] == ["The lantern is polished.", "The lighthouse is old.", "It shines."]
    assert [text[one.start :][:3] for one in found] == ["The", "The", "It "]


STATEMENT = "\t2022\t2021\nRevenues:\nSales\t$66,608\t$62,286\nNet loss\t(4,935)\t(4,202)"


@pytest.mark.parametrize(
    ("above", "unit"),
    [
        ("", ""),
        (
            "Consolidated statements\n(Dollars in millions, except per share data)\n",
            "Dollars in millions, except per share data",
        ),
        ("Umsatz je Land\nBeträge in Tausend Euro\n", "Beträge in Tausend Euro"),
    ],
)
def test_a_row_without_a_name_for_its_label(above: str, unit: str) -> None:
    """It says its years and the unit; a label above some of the rows ends no table."""
    found = split_sentences(f"{above}{STATEMENT}".lstrip("\t"))
    assert found[-1].text == "Net loss 2022: (4,935); 2021: (4,202)" + (f" ({unit})" if unit else "")
    assert found[-1].of_table and found[-2].text.startswith("Sales 2022: $66,608; 2021: $62,286")


def test_what_stands_above_labels() -> None:
    text = "(in millions)\t2022\t2021\nNet loss\t(4,935)\t(4,202)\nCountry\t2023\t2024"
    assert texts(text)[1] == "Net loss 2022: (4,935); 2021: (4,202) (in millions)"
    assert texts("Country\t2022\t2021\nNorway\t7\t8")[1] == "Country: Norway; 2022: 7; 2021: 8"


def test_amounts_are_no_names() -> None:
    assert texts("Sales\t66,608\t62,286\nNet loss\t(4,935)\t(4,202)")[1] == "Net loss (4,935) (4,202)"


@pytest.mark.parametrize(
    "above",
    ["The loss is $5 billion (2021: $3.5 billion).\n", "Sales in Europe were 5 million\n"],
)
def test_an_amount_is_no_unit(above: str) -> None:
    assert texts(above + STATEMENT)[-1] == "Net loss 2022: (4,935); 2021: (4,202)"


def test_a_year_among_other_facts_names_no_column() -> None:
    found = texts("Founded\t1998\nSeat\tOslo\nEmployees\t3,200\nShops\t41")
    assert found == ["Founded 1998", "Seat Oslo", "Employees 3,200", "Shops 41"]
    assert texts("Region\t2022\nEurope\t5\nAsia\t7")[2] == "Region: Asia; 2022: 7"


def test_a_table_below_a_label_has_names_of_its_own() -> None:
    found = texts("Model\tWeight\tPrice\nAurora 2\t2\t30\nDelivery\nCountry\tDays\nFrance\t3")
    assert found[-1] == "Country: France; Days: 3"
