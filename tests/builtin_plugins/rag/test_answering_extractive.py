"""Answers made of the passages' own sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from builtin_plugins.rag.answering.calibration import calibration_of
from builtin_plugins.rag.answering.candidate import Near
from builtin_plugins.rag.answering.coverage import subject_of
from builtin_plugins.rag.answering.expectations import fits
from builtin_plugins.rag.answering.extractive import candidates, compose
from builtin_plugins.rag.answering.quoting import quoted
from builtin_plugins.rag.answering.refusing import NOT_SUPPORTED
from builtin_plugins.rag.answering.weighing import weigh
from tests.builtin_plugins.rag.answering import answer, passages

WARRANTY = (
    "The X200 drill comes with a 24-month warranty. The warranty does not cover batteries. "
    "Repairs take about ten working days. Shipping is free within Europe."
)
LEAVE = "Employees get 25 days of annual leave. Sick leave longer than three days needs a certificate."


def test_the_answer_is_quoted_with_its_place_in_the_sources() -> None:
    """The sentence that answers comes with the 1-based number of its passage."""
    given = answer("How long is the warranty of the X200?", passages(LEAVE, WARRANTY))
    assert given.supported
    assert given.text.startswith("The X200 drill comes with a 24-month warranty. [2]")
    assert given.cited == (2,)


def test_each_sentence_is_cited_and_there_are_at_most_three() -> None:
    """However many sentences fit, no more than three are quoted, each followed by a citation that exists."""
    rows = [f"The warranty for model M{n} lasts {n} years." for n in range(20, 32)]
    given = answer("How long does the warranty last?", passages(" ".join(rows[:6]), " ".join(rows[6:])))
    quoted = re.findall(r"[^.]+\. \[(\d)\]", given.text)
    assert 1 <= len(quoted) <= 3
    assert given.cited == tuple(sorted({int(n) for n in quoted}))
    assert set(given.cited) <= {1, 2}


def test_overlapping_chunks_are_quoted_once() -> None:
    """A sentence that two chunks share is cited from the better-ranked one, also if one has only a part."""
    first = "Intro words. The warranty lasts 24 months from the date of purchase."
    second = (
        "lasts 24 months from the date of purchase. The warranty  lasts 24 months from the date of purchase."
    )
    given = answer("How long does the warranty last?", passages(first, second))
    assert given.text == "The warranty lasts 24 months from the date of purchase. [1]"


def test_near_duplicates_are_quoted_once_but_other_numbers_are_not_lost() -> None:
    """The same words are the same sentence, unless a number in them differs."""
    same = answer(
        "How long does the warranty last?",
        passages("The warranty lasts two years.", "The warranty, too, lasts for two years!"),
    )
    assert len(same.cited) == 1
    other = answer(
        "How long does the warranty last?",
        passages(
            "The warranty of the drill motor lasts 2 years.", "The warranty of the drill motor lasts 3 years."
        ),
    )
    assert other.cited == (1, 2)


def test_sentences_of_one_passage_keep_their_order() -> None:
    """What was written first is read first, whichever scored higher."""
    text = (
        "The warranty of the drill covers the motor. Something else entirely. "
        "Of the X200 drill the warranty covers the gear."
    )
    given = answer(
        "What does the warranty of the drill cover?",
        passages(text),
        lambda question, sentences: [0.9 if "warranty" in one else 0.1 for one in sentences],
    )
    assert given.text == (
        "The warranty of the drill covers the motor. [1] Of the X200 drill the warranty covers the gear. [1]"
    )


def test_similarity_finds_what_words_can_not() -> None:
    """Scores of meaning let a sentence answer that shares no word with the question."""

    def score(question: str, sentences: Sequence[str]) -> list[float]:
        return [0.75 if "two wheels" in sentence else 0.1 for sentence in sentences]

    found = passages("Trains leave hourly. Vehicles on two wheels need a reservation.")
    assert answer("May I bring my bike?", found, score).text.startswith("Vehicles on two wheels")
    assert not answer("May I bring my bike?", found).supported


def test_the_opening_sentence_says_what_the_others_are_about() -> None:
    """The sentence that answers has nothing of the subject, nor has the one before it."""
    text = (
        "Each autumn Ithena celebrates a festival of lanterns. Children carry lights through the lanes. "
        "The custom goes back to Jonas Falk, a teacher."
    )
    given = answer("To which teacher does the festival of lanterns in Ithena go back?", passages(text))
    assert "Jonas Falk" in given.text


def test_one_capital_is_no_whole_name() -> None:
    """In German every noun has one: it neither speaks for a sentence nor against it."""
    question = "Auf wen geht das Fest zurück?"
    assert fits(question, "Das Fest geht auf Jonas Falk zurück.") == 1
    assert fits(question, "Jeden Herbst feiert die Stadt das Fest.") == 0
    assert fits(question, "es wird früh gefeiert") == -1


def test_similarity_alone_decides_between_equal_words() -> None:
    """Scores reorder sentences that share the same words with the question."""
    found = passages("The alpha plan has a limit of 5. The beta plan has a limit of 9.")
    for chosen in ("alpha", "beta"):
        given = answer(
            "What is the limit of the plan?",
            found,
            lambda question, sentences, chosen=chosen: [0.9 if chosen in one else 0.2 for one in sentences],
        )
        assert chosen in given.text.split("[1]")[0]


def test_a_passage_that_is_not_shown_answers() -> None:
    """No other sentence is quoted in its place, least of all as surely; the answer names the passage."""
    found = passages("The observatory of Velmora stands on a hill.", "Anna Lorenz founded the observatory.")
    question, similarities = "Who founded the observatory of Velmora?", [0.5, 0.9]
    pieces = candidates(question, found)
    near = Near([similarities[one.passage - 1] for one in pieces])
    worth = weigh(question, found, pieces, near, calibration_of("all-minilm"))
    hidden = compose(worth, [1, None])
    assert (hidden.text, hidden.supported, hidden.unshown) == ("", False, 2)
    assert compose(worth, [None, 1]).text == ("Anna Lorenz founded the observatory. [1]")


@pytest.mark.parametrize("model", ["multilingual-e5-small", "all-minilm"])
@pytest.mark.parametrize(
    "text", ["The ferry leaves at noon.", "The ferry leaves at noon. It is red. It is old."]
)
@pytest.mark.parametrize("near", [0.0, 0.1, 0.2])
def test_one_passage_alone_answers_what_it_is_about(model: str, text: str, near: float) -> None:
    """That there is nothing to compare it with speaks for it no more than against it."""
    (only,) = passages(text)
    for question, similarity, answers in (
        ("Which band won the song contest?", near, False),
        ("When does the ferry leave?", 0.6 + near, True),
    ):
        found = [replace(only, near=similarity)]
        pieces = candidates(question, found)
        near_all = Near([similarity] * len(pieces))
        assert weigh(question, found, pieces, near_all, calibration_of(model)).supported is answers


@pytest.mark.parametrize("model", ["multilingual-e5-small", "all-minilm"])
def test_what_is_as_near_to_the_subject_alone_answers_less(model: str) -> None:
    """A sentence that is about chlorophyll above all is near whatever is asked about it."""
    (only,) = passages("Chlorophyll absorbs red and blue light. It reflects green. The rest is lost.")
    question, found = "What is the chemical formula of chlorophyll?", [replace(only, near=0.4)]
    pieces = candidates(question, found)
    near = [0.4 if "Chlorophyll" in one.text else 0.1 for one in pieces]
    asked, told = (
        weigh(question, found, pieces, Near(near, subject), calibration_of(model)).enough
        for subject in ([0.3] * len(pieces), [0.7 if one == 0.4 else 0.1 for one in near])
    )
    assert asked > 1.5 * told


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("What is the formula of chlorophyll?", "chlorophyll"),
        ("Welche Farbe haben die Blätter?", "Blätter"),
        ("How long is the warranty?", ""),
    ],
)
def test_the_subject_is_what_the_best_passage_speaks_of(question: str, subject: str) -> None:
    """It leaves out stop words, and words that only other passages contain."""
    found = passages("Chlorophyll is in each leaf. Ein Blatt, viele Blätter.", WARRANTY)
    assert subject_of(question, found) == subject
    assert not subject_of(question, [])


@pytest.mark.parametrize("model", ["multilingual-e5-small", "all-minilm"])
def test_a_code_is_the_same_in_every_language(model: str) -> None:
    """Words of another language can't speak against an answer; a code that is another one does."""
    lines = ("E17: Der Motor ist zu heiß.", "E18: Der Akku ist leer.", "E19: Das Messer steht still.")
    found = [replace(one, near=0.5, language="de") for one in passages(*lines)]
    worth = {}
    for code in ("E17", "E42"):
        question = f"What does the error {code} mean?"
        pieces = candidates(question, found, language="en")
        near = Near([0.6 if code in one.text else 0.5 for one in pieces])
        worth[code] = weigh(question, found, pieces, near, calibration_of(model), language="en")
    assert worth["E17"].supported and not worth["E42"].supported
    assert worth["E17"].enough > 2 * worth["E42"].enough


@pytest.mark.parametrize(
    "question", ["What is the capital of Mongolia?", "asdf qwer", "???", "", "Who won in 2018?"]
)
def test_nothing_in_the_documents_gets_told_so(question: str) -> None:
    """A question about something else gets the plain sentence and not one citation."""
    given = answer(question, passages(WARRANTY, LEAVE))
    assert (given.text, given.cited, given.supported) == (NOT_SUPPORTED, (), False)


@pytest.mark.parametrize("texts", [[], [""], ["---", "  \n "]])
def test_no_text_gets_told_so(texts: list[str]) -> None:
    """No passages, and passages without a sentence, support nothing."""
    assert not answer("How long is the warranty?", passages(*texts)).supported


def test_list_items_and_rows_can_answer() -> None:
    """A ``header: value`` line and a table row are quoted whole, without bullet, ended by a full stop."""
    text = "# Data sheet\n- Weight: 1.2 kg\n- Colour: red\n| Price | 89 EUR |"
    assert answer("What is the weight?", passages(text)).text == "Weight: 1.2 kg. [1]"
    assert answer("What is the price?", passages(text)).text == "Price | 89 EUR. [1]"


def test_headings_are_not_answers() -> None:
    """A heading shares the question's words and says nothing."""
    given = answer(
        "What about the warranty period?", passages("# Warranty period\n\nThe warranty lasts 2 years.")
    )
    assert given.text == "The warranty lasts 2 years. [1]"


SETTINGS = """## queue_size (integer)

Sets how many jobs may wait. It needs a restart. The default is 40.

## retry_size (integer)

Sets how many tries are kept. It needs a restart. The default is 7.
"""


@pytest.mark.parametrize(("setting", "default"), [("queue_size", 40), ("retry_size", 7)])
def test_a_sentence_means_what_its_heading_names(setting: str, default: int) -> None:
    """What a manual says of one setting, it says in the same words of the next."""
    given = answer(f"What is the default of {setting}?", passages(SETTINGS))
    assert given.text.startswith(f"{setting} (integer): The default is {default}.")


def test_a_heading_is_quoted_once() -> None:
    """Two sentences of one section say it once, however much of the question is in it."""
    section = "## Cleaning the filter\n\nThe filter lasts a year. The filter lies behind a lid."
    given = answer("How do I clean the filter of the pump?", passages(section))
    assert given.text == "Cleaning the filter: The filter lasts a year. [1] The filter lies behind a lid. [1]"


OPEN = "When is the dining car open?"
OFFICE = "Where is the lost and found office?"
TRAIN = "Wann kommt der Zug?"


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        (OPEN, f"{OPEN}\nFrom 18:00 until midnight.", "From 18:00 until midnight."),
        (OPEN, f"## {OPEN}\n\nFrom 18:00 until midnight.", "From 18:00 until midnight."),
        ("When can I eat in the dining car?", f"{OPEN}\nFrom 18:00.", f"{OPEN} From 18:00."),
        (OPEN, f"Q: {OPEN}\nA: From 18:00.", f"Q: {OPEN}; A: From 18:00."),
        (OPEN, f"It is red. {OPEN} The dining car is open from 18:00.", "The dining car is open from 18:00."),
        (OFFICE, f"{OFFICE}\n\nIn room 204.", "In room 204."),
        (TRAIN, f"Anna: {TRAIN}\n\nBen: Um 18:05 auf Gleis 7.", "Ben: Um 18:05 auf Gleis 7."),
        (TRAIN, f"Anna: {TRAIN}\nBen: Um 18:05.", f"Anna: {TRAIN}; Ben: Um 18:05."),
        (TRAIN, f"12:01 Anna: {TRAIN}\n12:02 Ben: Um 18:05.", f"12:01 Anna: {TRAIN} 12:02 Ben: Um 18:05."),
    ],
)
def test_a_question_is_no_answer(question: str, text: str, expected: str) -> None:
    """What stands below it, or after it, is; it is told only where it is not the one that was asked."""
    assert answer(question, passages(text)).text == f"{expected} [1]"


@pytest.mark.parametrize("text", [OPEN, f"Anna: {OPEN}", f"{OPEN}\nWhen does the dining car open?"])
def test_a_question_alone_supports_nothing(text: str) -> None:
    """Somebody else asked the same, and nobody answered."""
    assert not answer(OPEN, passages(text)).supported


def test_a_rhetorical_question_costs_its_neighbours_nothing() -> None:
    """Within running text it is a sentence that may be quoted, and so are those beside it."""
    text = "The bridge of Ithena sings in the wind. Who would have thought that? It was built in 1890."
    found = {one.text for one in candidates("When was the bridge of Ithena built?", passages(text))}
    assert found >= {"The bridge of Ithena sings in the wind.", "It was built in 1890."}


def test_the_line_of_a_log_is_quoted_alone() -> None:
    """Its neighbours are records of their own."""
    web = '10.0.0.7 - - [10/Oct/2025:13:55:36 +0000] "GET /health HTTP/1.1" 200 612 from the probe'
    killed = "10.0.0.9 - - Out of memory: killed process 4242 (java) of the user named build"
    given = answer(
        "Which process was killed because out of memory?", passages("\n".join([web] * 4 + [killed]))
    )
    assert given.text == f"{killed}. [1]"


@pytest.mark.parametrize(
    "sentence",
    [
        "दिल्ली राजधानी है।",
        "دہلی ہے۔",
        "متى؟",
        "Եր է։",
        "ཡིན།",
        "「はい。」",
        "ปิดวันจันทร์",
        "เปิดทุกวัน เวลา 6.00",
        "It is.",
    ],
)
def test_a_quote_that_has_ended_gets_no_full_stop(sentence: str) -> None:
    """Whatever its script ends sentences with."""
    assert quoted(sentence) == sentence


def test_a_line_without_a_full_stop_answers() -> None:
    """It looks like a heading, but nothing stands below it."""
    given = answer("When does the office close?", passages("The office closes at five"))
    assert given.text == "The office closes at five. [1]"


def test_the_documents_own_brackets_are_no_citations() -> None:
    """[12] in a paper must not read as our twelfth source."""
    given = answer(
        "What is the melting point of zirconia?",
        passages("The melting point of zirconia is 2715 C [12, 13]."),
    )
    assert given.text == "The melting point of zirconia is 2715 C (12, 13). [1]"


def test_candidates_are_bounded_and_unique() -> None:
    """However long the passages, few sentences need scoring."""
    text = " ".join(f"The warranty of drill {n} lasts long." for n in range(200))
    found = candidates("How long is the warranty?", passages(text, text), limit=10)
    assert len(found) == len({one.text for one in found}) == 10


def test_what_lags_far_behind_is_no_candidate() -> None:
    """Where one sentence alone is about it, no other is scored, but the best passage keeps one."""
    filler = " ".join(f"Filler number {n} stands here." for n in range(200))
    (only,) = candidates("How long is the warranty?", passages(f"{filler} The warranty lasts long."))
    assert only.text == "The warranty lasts long."
    found = candidates("How long is the warranty?", passages(filler, "The warranty lasts long."))
    assert {one.passage for one in found} == {1, 2}


def test_composing_needs_a_score_for_each_candidate() -> None:
    """Too few scores are a mistake of the caller, not a worse answer."""
    found = candidates("How long is the warranty?", passages(WARRANTY))
    with pytest.raises(ValueError, match=r"shorter|longer"):
        near, how = Near([0.5]), calibration_of("all-minilm")
        weigh("How long is the warranty?", passages(WARRANTY), found, near, how)


def test_turkish_words_match_through_their_endings() -> None:
    """Suffixes, dotted and dotless i, and a Turkish question word leave the answer findable."""
    text = "İstanbul şubemiz 09:00 ile 18:00 arasında açıktır. İade işlemleri 14 gün içinde yapılır."
    assert answer("İade işlemi kaç gün içinde yapılıyor?", passages(text)).text.startswith(
        "İade işlemleri 14 gün"
    )


def test_a_number_in_the_question_leaves_out_its_neighbours() -> None:
    """The row of another model says nothing about this one."""
    table = "Model\tPower\tWarranty\nAurora 2\t12 W\t2 years\nAurora 3\t15 W\t5 years"
    given = answer("What is the warranty of the Aurora 3?", passages(table))
    assert given.text == "Model: Aurora 3; Power: 15 W; Warranty: 5 years. [1]"


def test_a_piece_of_a_long_sentence_shows_that_it_is_one() -> None:
    """A full stop behind half a sentence would say something else."""
    shall = "The lessee shall, " + "without prejudice to what the lessor may claim under any other law, " * 9
    given = answer("What shall the lessee pay?", passages(f"{shall}pay the rent of 500 pounds. It is cold."))
    assert "pay the rent of 500 pounds. [1]" in given.text
    for quote in re.findall(r"(.+?) \[1\] ?", given.text):
        assert quote[-1] in ".…"
        assert quote.endswith("…") is not quote.endswith(("pounds.", "cold."))
        assert quote.startswith("… ") is ("500 pounds" in quote)
