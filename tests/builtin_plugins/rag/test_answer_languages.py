"""Answers and refusals in the question's language, and what an answer may depend on."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import pytest_asyncio

from builtin_plugins.rag.answering.refusal_texts import NOT_SUPPORTED
from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import ask, ingest, make_base, make_pipeline, somebody

pytestmark = pytest.mark.asyncio(loop_scope="session")

TOWNS = {
    "velmora.md": "# Velmora\n\nThe observatory of Velmora stands on a hill above the old town. It was "
    "founded in 1897 by Anna Lorenz and has a dome of 31 metres. On Fridays visitors may use the telescope.",
    "tarnik.md": "# Tarnik\n\nDie Steinbrücke von Tarnik hat zwölf Bögen. Ingenieure unter Pavel Dusek "
    "vollendeten sie 1866, nachdem der hölzerne Übergang abgebrannt war.",
}


@dataclass
class Shelf:
    ann: Actor
    pipeline: str


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shelf(running: Running) -> Shelf:
    ann = await somebody(running)
    base = await make_base(ann)
    for name, text in TOWNS.items():
        await ingest(running, ann, base, name, text)
    return Shelf(ann, await make_pipeline(ann, base))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who founded the observatory of Velmora?", "Anna Lorenz"),
        ("Unter wessen Leitung wurde die Brücke von Tarnik vollendet?", "Pavel Dusek"),
    ],
)
async def test_the_sentence_with_the_pronoun_is_quoted(shelf: Shelf, question: str, expected: str) -> None:
    """The question asks for what a sentence says that leaves its subject to the one before."""
    found = await ask(shelf.ann, shelf.pipeline, question)
    assert expected in found["answer"]
    assert 0.0 < found["confidence"] <= 1.0


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Who won the chess olympiad of 1972?", "The documents do not contain"),
        ("Wer hat die Schacholympiade im Jahr 1972 gewonnen?", "Die Dokumente enthalten keine"),
        ("¿Quién ganó la olimpiada de ajedrez de 1972?", "Los documentos no contienen"),
        ("1972 satranç olimpiyatını hangi ülke kazandı?", "Belgeler bu soruya"),
        ("多少人？", "文档中没有"),
        ("佢哋幾時贏咗國際象棋比賽呀？", "文档中没有"),  # Cantonese, which has no refusal of its own
        ("Что такое E42?", "В документах нет"),
        ("ما هو E42؟", "لا تحتوي المستندات"),
        ("कौन?", "दस्तावेज़ों में"),
        ("What does 茶道 mean?", "The documents do not contain"),
        ("Qui a peint la Joconde ?", "Les documents ne contiennent"),
        ("Was kostet das?", "Die Dokumente enthalten keine"),
        ("Quanto costa?", "I documenti non contengono"),
        ("¿Puedo fumar?", "Los documentos no contienen"),
        ("Vad kostar det?", "Dokumenten innehåller inget"),
        ("Wifi?", "The documents do not contain"),
    ],
)
async def test_a_refusal_speaks_the_questions_language(shelf: Shelf, question: str, said: str) -> None:
    found = await ask(shelf.ann, shelf.pipeline, question)
    assert found["answer"].startswith(said)
    assert (found["sources"], found["confidence"]) == ([], 0.0)


@pytest.mark.parametrize(
    "question",
    ["sfy ozgizd hrulsmom cmqaps bxypij", "zsgcq toaws wgzgwwbtx ebxy", "asdf qwer hjkl lkjh qwer zxcv"],
)
async def test_random_letters_are_no_foreign_language(shelf: Shelf, question: str) -> None:
    """Words of another language than the documents' say nothing against an answer; these are of none."""
    found = await ask(shelf.ann, shelf.pipeline, question)
    assert (found["answer"], found["sources"]) == (NOT_SUPPORTED, [])


@pytest.mark.parametrize("question", ["Who founded the observatory of Velmora?", "Who won in 1972?"])
@pytest.mark.parametrize("way", [None, "parent_context", "compress"])
async def test_whether_it_declines_does_not_depend_on_top_k(
    shelf: Shelf, question: str, way: str | None
) -> None:
    options = {} if way is None else {way: True}
    given = [await ask(shelf.ann, shelf.pipeline, question, top_k=top_k, **options) for top_k in (1, 2, 20)]
    assert len({bool(one["sources"]) for one in given}) == 1
    assert len({one["answer"].split("[")[0] for one in given}) == 1
    assert [len(one["sources"]) <= top_k for one, top_k in zip(given, (1, 2, 20), strict=True)] == [True] * 3
    assert max(one["confidence"] for one in given) - min(one["confidence"] for one in given) < 0.001
