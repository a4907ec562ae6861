"""A step: over which entities it goes, how far, and what it is worth."""

from __future__ import annotations

from itertools import pairwise

import pytest

from builtin_plugins.graph_rag.extraction.rules import extract
from builtin_plugins.graph_rag.walk.digests import digest
from builtin_plugins.graph_rag.walk.index import WalkIndex
from builtin_plugins.graph_rag.walk.ranking import KEPT, MOVED, raised
from builtin_plugins.graph_rag.walk.steps import MOST, RankedSource, WalkStep, steps
from builtin_plugins.graph_rag.walk.titles import title_keys

FILM = "Silent Harbor is a film of 1951 directed by Tilda Vanqvist. It was shot in Greyhaven."
QUESTION = "Where was the director of the film Silent Harbor born?"


def _walk(texts: list[str], question: str = QUESTION, among: list[str] | None = None) -> list[WalkStep]:
    """Steps from the first text; documents are named by their places."""
    index = WalkIndex()
    index.put([(str(at), [digest("p", 0, text, extract(text))]) for at, text in enumerate(texts)])
    return steps(index.segments, question, [RankedSource("0", "p", 0.9, texts[0])], among)


def test_the_passage_under_a_name_is_worth_more_than_one_that_mentions_it() -> None:
    found = _walk([FILM, "Tilda Vanqvist was a bee keeper.", "Honey was sold to Tilda Vanqvist."])
    assert [(step.group, step.entity, step.is_title) for step in found] == [
        ("1", "Tilda Vanqvist", True),
        ("2", "Tilda Vanqvist", False),
    ]
    assert found[0].worth == pytest.approx(5 * found[1].worth)


def test_a_sentence_closer_to_the_question_leads_further() -> None:
    found = _walk([FILM, "Tilda Vanqvist was a bee keeper.", "Greyhaven is a town by the sea."])
    assert [step.group for step in found] == ["1", "2"]


def test_a_passage_that_brings_missing_words_is_worth_more() -> None:
    found = _walk([FILM, "Tilda Vanqvist kept bees.", "Tilda Vanqvist was born in Oxmouth."])
    assert [step.group for step in found] == ["2", "1"]


def test_what_the_question_names_leads_less_far() -> None:
    plain = _walk([FILM, "Tilda Vanqvist kept bees."])
    named = _walk([FILM, "Tilda Vanqvist kept bees."], "Was Tilda Vanqvist the director of Silent Harbor?")
    assert named[0].worth < plain[0].worth


def test_too_common_a_name_leads_nowhere() -> None:
    texts = [FILM, *["Honey was sold to Tilda Vanqvist."] * (MOST - 1)]
    assert len(_walk(texts)) > 0
    assert _walk([*texts, texts[1]]) == []


def test_only_among_the_documents_allowed() -> None:
    texts = [FILM, "Tilda Vanqvist kept bees.", "Tilda Vanqvist was born in Oxmouth."]
    assert [step.group for step in _walk(texts, among=["0", "1"])] == ["1"]


def test_a_step_is_worth_what_it_is_without_the_other_documents() -> None:
    """Otherwise, scores would tell whom documents mention that one may not read."""
    texts, others = [FILM, "Tilda Vanqvist kept bees."], ["Honey was sold to Tilda Vanqvist."] * 100
    assert _walk([*texts, *others], among=["0", "1"]) == _walk(texts)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("《白河之夜》是林远山的小说。", "林远山，1956年出生于苏州市。"),
        ("『白い川』は村井遥が監督した映画である。", "村井遥は札幌で生まれた。"),
        ("영화 하얀강은 박서윤이 감독했다.", "박서윤은 부산에서 태어났다."),
        ("فيلم «النهر الأبيض» من إخراج سميرة الحلواني.", "ولدت سميرة الحلواني في طنطا."),
        ("הסרט בוים בידי רונית כרמון.", "רונית כרמון נולדה בחיפה."),
        ("सफ़ेद नदी का निर्देशन मीरा चटवाल ने किया।", "मीरा चटवाल का जन्म पुणे में हुआ।"),
        ("ภาพยนตร์แม่น้ำขาวกำกับโดยสมหญิงวงศ์ไพบูลย์", "สมหญิงวงศ์ไพบูลย์เกิดที่เชียงใหม่"),
        ("Der Film wurde von Tilda Vanqvist gedreht.", "Tilda Vanqvist wurde in Oxmünde geboren."),
    ],
    ids=["zh", "ja", "ko", "ar", "he", "hi", "th", "de"],
)
def test_names_join_passages_in_every_script(source: str, target: str) -> None:
    """With capitals or without, a name that two passages share leads from one to the other."""
    others = [
        "今天天气很好。",
        "天気がいい。",
        "날씨가 좋다.",
        "الطقس جميل.",
        "מזג האוויר נאה.",
        "मौसम अच्छा है।",
        "อากาศดี",
    ]
    assert [step.group for step in _walk([source, target, *others], "?")][:1] == ["1"]


@pytest.mark.parametrize(
    ("source", "title"),
    [("فيلم من إخراج سامي الحداد.", "سامي الحداد"), ("ภาพยนตร์กำกับโดยมาลี รุ่งสกุล", "มาลี รุ่งสกุล")],
    ids=["ar", "th"],
)
def test_titles_without_capitals(source: str, title: str) -> None:
    """A heading in a script without capitals is a title, with article or in pieces."""
    [step, *_] = _walk([source, f"{title}\n\n{title} 1956."], "?")
    assert step.group == "1" and step.is_title


@pytest.mark.parametrize(
    ("text", "document", "keys"),
    [
        ("Kiss and Tell is a film.", None, {"kiss and tell"}),
        ("Kiss and Tell (1945 film)\n\nIt is short.", None, {"kiss and tell (1945 film", "kiss and tell"}),
        ("# White River\nA stream.", None, {"white river"}),
        ("White River: a stream in the north.", None, {"white river"}),
        ("White River. A stream in the north.", None, {"white river"}),
        ("It flows.", "White_River.txt", {"white river"}),
        ("It flows.", "doc_0012.txt", set()),
        ("Nothing happened that day. It was late.", None, set()),
    ],
)
def test_titles(text: str, document: str | None, keys: set[str]) -> None:
    """Headings, labels, the subject of the first sentence and telling file names are titles."""
    assert set(title_keys(text, extract(text), document)) == keys


class TestRaised:
    def test_the_first_two_stay(self) -> None:
        made = raised([0.9, 0.8, 0.7], [(None, 1.0), (2, 0.9), (1, 0.5)])
        scores = [0.9, made.lifted[1], *(score for score in made.reached if score is not None)]
        assert scores == sorted(scores, reverse=True)
        assert len(set(scores)) == KEPT + 2
        assert made.reached[2] is None

    def test_a_weak_step_moves_little(self) -> None:
        [moved] = raised([0.9, 0.8, 0.5], [(None, 0.1)]).reached
        assert moved is not None and 0.5 < moved < 0.7

    def test_a_sure_ranking_gives_way(self) -> None:
        [unsure] = raised([0.9, 0.89, 0.88, 0.3], [(None, 0.2)]).reached
        [sure] = raised([0.9, 0.5, 0.4, 0.3], [(None, 0.2)]).reached
        assert unsure is not None and sure is not None and sure > unsure

    def test_few_are_moved(self) -> None:
        made = raised([0.9, 0.8, 0.5], [(None, 0.3)] * 6)
        assert [score is None for score in made.reached] == [False] * MOVED + [True] * (6 - MOVED)
        assert all(one > other for one, other in pairwise(filter(None, made.reached)))

    def test_nothing_found(self) -> None:
        """Without a ranking, or with one that found nothing, all stays."""
        assert raised([], [(None, 1.0)]).reached == [None]
        assert raised([0.0], [(None, 1.0)]).reached == [None]
