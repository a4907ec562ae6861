"""Searching over HTTP: the ranking that an answer goes by, with what each leg said, and nothing hidden."""

from __future__ import annotations

import io
import unicodedata
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import pytest_asyncio

from builtin_plugins.inference.api import Embedded
from kernel.sdk import hookimpl
from kernel.testing import Actor, Running, platforms
from tests.builtin_plugins.rag.rag_support import (
    HANDBOOK,
    ask,
    ingest,
    make_base,
    make_pipeline,
    problems,
    somebody,
)
from tests.fakes.hash_embeddings import HashEmbeddings

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOTEL = "How much may a hotel cost per night?"
ERRORS = "The code CK-381 means that the water filter is clogged. Rinse the filter under running water."
FOREIGN = {
    "ru.txt": "Обсерватория была основана в Бергене в 1897 году.",
    "zh.txt": "天文台于1897年在卑尔根附近建成。",
    "ar.txt": "تأسس المرصد الفلكي بالقرب من بيرغن عام 1897.",
}


@dataclass
class Shelf:
    """A knowledge base with two documents, and a pipeline over it."""

    ann: Actor
    base: str
    pipeline: str


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shelf(running: Running) -> Shelf:
    ann = await somebody(running)
    base = await make_base(ann)
    await ingest(running, ann, base, "handbook.md", HANDBOOK)
    await ingest(running, ann, base, "errors.md", ERRORS)
    return Shelf(ann, base, await make_pipeline(ann, base))


def places(shelf: Shelf) -> tuple[str, str]:
    return (f"/v1/rag/knowledge-bases/{shelf.base}/search", f"/v1/rag/pipeline/{shelf.pipeline}/search")


async def test_words_decide_in_languages_that_the_model_does_not_know(platform_home: Path) -> None:
    """A German question to a model that knows English; an English one is ranked by both legs."""
    embeddings = HashEmbeddings()
    embeddings.languages = frozenset({"en"})
    async with platforms(platform_home) as start:
        running = await start("rag", "extractive_answers", embeddings)
        ann = await somebody(running)
        base = await make_base(ann)
        await ingest(running, ann, base, "handbook.md", HANDBOOK)

        async def legs(question: str) -> list[tuple[float, float]]:
            path = f"/v1/rag/knowledge-bases/{base}/search"
            items = (await ann.post(path, json={"question": question})).json()["items"]
            return [(item["scores"]["fused"], item["scores"]["text"]) for item in items]

        german = await legs("Wie viel darf ein Hotel in der Nacht höchstens kosten?")
        assert german
        for fused, words in german:
            assert fused == pytest.approx(words, abs=1e-5)
        assert any(fused > words + 0.01 for fused, words in await legs(HOTEL))


async def test_both_routes_rank_as_the_answer_does(shelf: Shelf) -> None:
    """The passages and their order are those of the answer's sources, whose scores tell its confidence, and
    whose sections are those of what is quoted, which they name.
    """
    differing = ("score", "scores", "section", "quotes")
    answer = await ask(shelf.ann, shelf.pipeline, HOTEL)
    for place in places(shelf):
        found = (await shelf.ann.post(place, json={"question": HOTEL})).json()
        bare = [
            {key: value for key, value in item.items() if key not in differing} for item in found["items"]
        ]
        assert bare == [
            {key: source[key] for key in source if key not in differing} for source in answer["sources"]
        ]
        assert found["total"] == len(bare) and found["supported"] is True and found["took_ms"] > 0


async def test_each_leg_tells_its_score(shelf: Shelf) -> None:
    place = places(shelf)[0]
    hybrid = (await shelf.ann.post(place, json={"question": "What does CK-381 mean?"})).json()["items"]
    assert hybrid[0]["source"] == "errors.md"
    assert hybrid[0]["scores"]["text"] > hybrid[1]["scores"]["text"] == 0
    dense = (await shelf.ann.post(place, json={"question": HOTEL, "hybrid": False})).json()["items"]
    assert all(item["scores"]["text"] is None for item in dense)
    for items in (hybrid, dense):
        fused = [item["scores"]["fused"] for item in items]
        assert fused == sorted(fused, reverse=True) == [item["score"] for item in items]
    assert [item["scores"]["dense"] for item in dense] == [item["score"] for item in dense]


class Aloof(HashEmbeddings):
    """Finds that most texts have less to do with each other than nothing."""

    @hookimpl
    async def embed_texts(self, model: str, texts: Sequence[str]) -> Embedded | None:
        made = await super().embed_texts(model, texts)
        return made and replace(made, unrelated=0.3)


@pytest.mark.parametrize("hybrid", [True, False])
async def test_no_score_leaves_its_range(platform_home: Path, hybrid: bool) -> None:
    async with platforms(platform_home) as start:
        running = await start("rag", "extractive_answers", Aloof())
        ann = await somebody(running)
        bases = [await make_base(ann), await make_base(ann)]
        for base, name, text in zip(bases * 2, "abcd", (HANDBOOK, ERRORS, *FOREIGN.values()), strict=False):
            await ingest(running, ann, base, f"{name}.txt", text)
        pipeline = await make_pipeline(ann, *bases)
        for place in (f"knowledge-bases/{bases[0]}", f"pipeline/{pipeline}"):
            body = {"question": "How much may a filter cost?", "hybrid": hybrid, "top_k": 50}
            items = (await ann.post(f"/v1/rag/{place}/search", json=body)).json()["items"]
            fused = [item["scores"]["fused"] for item in items]
            assert len(items) > 1 and fused == sorted(fused, reverse=True)
            legs = [score for item in items for score in item["scores"].values() if score is not None]
            assert min(legs) == 0.0 and max(legs) <= 1.0


async def test_nothing_is_hidden_where_an_answer_would_be_refused(shelf: Shelf) -> None:
    question = "Who won the chess olympiad of 1972?"
    assert (await ask(shelf.ann, shelf.pipeline, question))["sources"] == []
    for place in places(shelf):
        found = (await shelf.ann.post(place, json={"question": question})).json()
        assert found["items"] and found["supported"] is False


@pytest.mark.parametrize(
    "question",
    [
        HOTEL,
        "What does CK-381 mean?",
        "Who pays for breakfast?",
        "Which class of trains do dogs like?",
        "Why?",
    ],
)
async def test_a_search_knows_what_the_answerer_decides(shelf: Shelf, question: str) -> None:
    answered = bool((await ask(shelf.ann, shelf.pipeline, question))["sources"])
    for place in places(shelf):
        found = (await shelf.ann.post(place, json={"question": question})).json()
        assert found["supported"] is answered


async def test_a_pipelines_settings_count_where_the_question_is_silent(shelf: Shelf) -> None:
    """A pipeline that says nothing is hybrid; an explicit false stays dense, on either side."""
    dense = await make_pipeline(shelf.ann, shelf.base, retrieval_config={"hybrid": False, "top_k": 1})
    for pipeline, body, words, count in [
        (shelf.pipeline, {}, True, 2),
        (dense, {}, False, 1),
        (dense, {"hybrid": True, "top_k": 2}, True, 2),
        (shelf.pipeline, {"hybrid": False}, False, 2),
    ]:
        place = f"/v1/rag/pipeline/{pipeline}/search"
        items = (await shelf.ann.post(place, json={"question": HOTEL, **body})).json()["items"]
        assert (len(items), items[0]["scores"]["text"] is not None) == (count, words)
        retrieval = (await ask(shelf.ann, pipeline, HOTEL, **body))["method_details"]["retrieval"]
        assert retrieval == ("hybrid" if words else "dense")


async def test_a_filter_works_inside_the_search(shelf: Shelf) -> None:
    """One place for a passage goes to the document that is asked for, however badly it fits."""
    body = {"question": HOTEL, "top_k": 1, "metadata_filter": {"source": "errors.md"}}
    for place in places(shelf):
        items = (await shelf.ann.post(place, json=body)).json()["items"]
        assert [item["source"] for item in items] == ["errors.md"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "body.question"),
        ({"question": " "}, "body.question"),
        ({"question": "x", "top_k": 0}, "body.top_k"),
        ({"question": "x", "top_k": 101}, "body.top_k"),
        ({"question": "x", "hybrid": "perhaps"}, "body.hybrid"),
        ({"question": "x", "metadata_filter": {"page": 1}}, "body.metadata_filter.page"),
    ],
)
async def test_what_does_not_fit_is_named(shelf: Shelf, body: dict[str, object], field: str) -> None:
    for place in places(shelf):
        assert field in problems(await shelf.ann.post(place, json=body))


async def test_documents_of_other_languages_are_found(running: Running, ann: Actor, base: str) -> None:
    await ingest(running, ann, base, "handbook.md", HANDBOOK)
    for name, text in FOREIGN.items():
        await ingest(running, ann, base, name, text)
    place = f"/v1/rag/knowledge-bases/{base}/search"
    for question, name in [
        ("Когда основана обсерватория?", "ru.txt"),
        ("天文台是哪一年建成的？", "zh.txt"),
        ("متى تأسس المرصد؟", "ar.txt"),
    ]:
        assert (await shelf_first(ann, place, question)) == name
    assert (await shelf_first(ann, place, "When was the observatory founded?")) in FOREIGN


async def shelf_first(actor: Actor, place: str, question: str) -> str:
    """The source of the best passage."""
    return str((await actor.post(place, json={"question": question})).json()["items"][0]["source"])


@pytest.mark.parametrize("stored", ["NFC", "NFD"])
@pytest.mark.parametrize("sought", ["NFC", "NFD"])
async def test_names_as_macos_spells_them(
    running: Running, ann: Actor, base: str, stored: str, sought: str
) -> None:
    """A filter finds a file whichever way its accents are spelled, and names are stored in one."""
    sent, wanted = (unicodedata.normalize(form, "Übergabe.txt") for form in (stored, sought))
    box = io.BytesIO()
    with zipfile.ZipFile(box, "w") as archive:
        archive.writestr(sent, "The berths are free.")
    await ingest(running, ann, base, "box.zip", box.getvalue())
    body = {"question": "Which berths are free?", "metadata_filter": {"source": wanted}}
    answer = await ann.post(f"/v1/rag/knowledge-bases/{base}/search", json=body)
    assert [one["source"] for one in answer.json()["items"]] == ["Übergabe.txt"]
