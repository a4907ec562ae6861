"""The BM25 index of one collection: plain words in, filtered before ranking, nothing removed comes back."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from builtin_plugins.vectors.text import TextIndex


def indexed(*texts: str) -> TextIndex:
    index = TextIndex()
    index.add(np.arange(len(texts)), texts)
    return index


def many(count: int, seed: int = 0) -> list[str]:
    """Texts of ten words from a vocabulary of fifty, so that each word occurs in many of them."""
    words = np.array([f"word{number}" for number in range(50)])
    rows = np.random.default_rng(seed).integers(0, 50, (count, 10))
    return [" ".join(words[row]) for row in rows]


def test_the_text_with_the_rarer_word_comes_first() -> None:
    index = indexed("the pump failed", "the pump runs", "the valve leaks", "a pump and a leaking valve")
    found = index.search("leaking valve", 10)
    assert set(found.labels.tolist()) == {2, 3}
    assert (np.diff(found.scores) <= 0).all()


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("The invoices were paid", "paying an INVOICE"),
        ("Café Zürich façade", "cafe zurich facade"),
        ("replace part FK-208-B today", "fk-208-b"),
        ("set max_connections to 90", "max connections"),
    ],
)
def test_words_match_in_any_form(text: str, question: str) -> None:
    assert indexed("nothing to see", text).search(question, 5).labels.tolist() == [1]


@pytest.mark.parametrize(
    "question",
    [
        '"pump',
        "pump AND (",
        "text:pump^9 OR label:1",
        "pump* ~2 [a TO z] \\",
        "+pump -pump !pump",
        "label:[0 TO 9] pump",
        "\x00pump\uffff",
    ],
)
def test_no_character_of_a_question_has_a_meaning(question: str) -> None:
    """Whatever a query language would make of it, the words are looked up and nothing else."""
    index = indexed("the pump failed", "the valve leaks", "pump house")
    assert set(index.search(question, 5).labels.tolist()) == {0, 2}


@pytest.mark.parametrize("question", ["", "   ", "?!…", "zebra"])
def test_a_question_without_a_known_word_finds_nothing(question: str) -> None:
    assert indexed("the pump failed").search(question, 5).size == 0


def test_nothing_is_found_where_nothing_is_asked_for() -> None:
    """No hits are an answer, with and without a filter; the index would end a search for none in a panic."""
    index = indexed("the pump failed")
    assert index.search("pump", 0).size == index.search("pump", 0, [0]).size == 0


def test_a_question_of_stop_words_is_still_looked_up() -> None:
    assert indexed("to be or not to be", "pump").search("to be", 5).labels.tolist() == [0]


def test_stop_words_beside_another_word_find_nothing() -> None:
    assert indexed("to be or not to be", "a pump").search("to be a pump", 5).labels.tolist() == [1]


def test_a_filter_works_before_the_ranking() -> None:
    """The one allowed text is found behind a hundred better ones; an empty filter allows nothing."""
    index = indexed(*["pump pump pump"] * 100, "a pump among many other words of little interest here")
    assert index.search("pump", 3, [100]).labels.tolist() == [100]
    assert index.search("pump", 3, []).size == 0


@pytest.mark.parametrize("share", [0.9, 0.5, 0.05, 0.02, 0.005])
def test_a_large_filter_gives_what_a_full_list_would(share: float) -> None:
    index = indexed(*many(30_000))
    allowed = np.flatnonzero(np.random.default_rng(1).random(30_000) < share)
    everything = index.search("word1 word2 word3", 30_000)
    kept = np.isin(everything.labels, allowed)
    found = index.search("word1 word2 word3", 20, allowed)
    assert set(found.labels.tolist()) <= set(allowed.tolist())
    assert found.scores == pytest.approx(everything.scores[kept][:20])


def test_a_large_filter_whose_texts_rank_last_is_answered_in_full() -> None:
    index = indexed(*["pump pump"] * 8_000, *["a pump in a longer sentence"] * 2_000)
    assert index.search("pump", 20, np.arange(8_000, 10_000)).size == 20


def test_removed_texts_are_gone() -> None:
    """They are neither counted nor found, and their share in the statistics is told."""
    index = indexed(*["the pump failed"] * 10)
    index.remove([0, 1, 99])
    assert index.count == 8
    assert not {0, 1} & set(index.search("pump", 10).labels.tolist())
    assert index.stale == pytest.approx(0.2)


def test_many_small_additions_stay_searchable() -> None:
    index = TextIndex()
    for label in range(40):
        index.add([label], [f"pump number{label}"])
    assert index.count == 40
    assert sorted(index.search("pump", 100).labels.tolist()) == list(range(40))


@pytest.mark.parametrize(
    ("labels", "texts", "message"), [([1], ["a", "b"], "1 labels for 2 texts"), ([1, 1], ["a", "b"], "twice")]
)
def test_texts_that_do_not_fit_are_refused(labels: list[int], texts: list[str], message: str) -> None:
    index = TextIndex()
    with pytest.raises(ValueError, match=message):
        index.add(labels, texts)
    assert index.count == 0


def test_a_whole_page_may_be_asked() -> None:
    index = indexed(*many(500), *(f"rare{number}" for number in range(200)))
    page = " ".join([*many(100), *(f"unknown{n}" for n in range(20_000)), *(f"rare{n}" for n in range(200))])
    found = index.search(page, 700)
    assert found.size
    assert found.labels.min() >= 500


def test_a_full_match_earns_the_full_score() -> None:
    index = indexed("red pump", "blue valve", "green gasket")
    found = index.search("red pump", 1)
    assert found.scores[0] == pytest.approx(found.full, rel=0.01)


def test_searches_run_while_the_index_changes() -> None:
    index = indexed(*["steady pump"] * 20)
    stop = threading.Event()

    def change() -> None:
        for _ in range(20):
            index.add(np.arange(100, 150), ["steady pump"] * 50)
            index.remove(np.arange(100, 150))
        stop.set()

    def search() -> bool:
        whole = True
        while not stop.is_set():
            found = set(index.search("pump", 200).labels.tolist())
            whole &= found >= set(range(20)) and len(found) in (20, 70)
        return whole

    with ThreadPoolExecutor(3) as threads:
        searches = [threads.submit(search) for _ in range(2)]
        threads.submit(change).result()
        assert all(each.result() for each in searches)


def test_scores_among_some_texts_follow_what_these_texts_say_now() -> None:
    """Also those of a word that is so common that its texts are remembered."""
    texts = ["pump"] * 11_000 + ["valve"] * 500
    among = np.arange(10_900, 11_500)

    def scores(index: TextIndex) -> list[tuple[int, float]]:
        ranking = index.bound_search("pump valve", among)(600, among)
        return sorted(zip(ranking.labels.tolist(), ranking.scores.tolist(), strict=True))

    changed = indexed(*texts)
    assert scores(changed) == scores(changed)
    changed.add(np.arange(11_000, 11_200), ["pump"] * 200)
    texts[11_000:11_200] = ["pump"] * 200
    assert scores(changed) == scores(indexed(*texts))


def test_a_word_counts_among_some_texts_by_these_alone_however_many_others_have_it() -> None:
    """However the texts with it are counted: few or many have it, few or many are searched."""
    for others in (0, 300, 12_000):
        for own in (20, 400):
            texts = ["pump"] * others + ["pump valve", *["valve"] * (own - 1)]
            among = np.arange(others, others + own)
            ranking = indexed(*texts).bound_search("pump valve", among)(own, among)
            alone = indexed(*texts[others:]).bound_search("pump valve", np.arange(own))(own, np.arange(own))
            assert ranking.scores.tolist() == alone.scores.tolist()
            assert ranking.labels[0] == others
