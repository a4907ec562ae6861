"""Texts that nobody writes on purpose."""

from __future__ import annotations

import io
import json
import time

import pytest

from kernel.testing import Actor
from tests.builtin_plugins.graph_rag.graph_support import API, call, construct, names

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.parametrize("running", ["sqlite"], indirect=True, scope="module"),
]

HEBREW = 'ד״ר עדה לינדקוויסט מנהלת את "מכון נורדליס" בטרומסו מאז 2019.'
CHINESE = "王小明博士在北京大学研究《红楼梦》。北京大学位于中国北京。"


class TestTexts:
    @pytest.mark.long
    async def test_five_megabytes(self, ann: Actor) -> None:
        """A text of 5 MB is built, in a bounded time, while others are answered."""
        sentences = (
            f"Ship {n} of Captain Brandt {n % 97} reached Port Haven {n % 89}. " for n in range(95_000)
        )
        text = "".join(sentences)[:5_000_000]
        started = time.monotonic()
        body = io.BytesIO(json.dumps({"document_id": "large", "text": text}).encode())
        headers = {"Content-Type": "application/json"}
        made = await ann.post(f"{API}/construct-graph", data=body, headers=headers)
        assert made.status == 200 and made.json()["entity_count"] > 100
        assert time.monotonic() - started < 120
        await ann.delete(f"{API}/graph/document/large")

    async def test_too_long(self, ann: Actor) -> None:
        body = io.BytesIO(json.dumps({"document_id": "a", "text": "x" * 5_000_001}).encode())
        headers = {"Content-Type": "application/json"}
        refused = await ann.post(f"{API}/construct-graph", data=body, headers=headers)
        assert refused.status == 422
        assert (
            refused.detail[0]["loc"] == ["body", "text"] and "several documents" in refused.detail[0]["msg"]
        )

    @pytest.mark.parametrize(
        "text",
        [
            "".join(chr(code) for code in range(1, 32)) * 50 + "Ada Lindqvist met Jonas Berg.",
            "Buffalo " * 20_000,
            "A" * 200_000,
            "(" * 50_000,
            '"' * 50_000,
            "\u202eAda Lindqvist\u202c " * 500,
            "e\u0301" * 50_000,
            "🙂 " * 20_000,
            "Ada. " * 20_000,
        ],
        ids=["control", "one-word", "no-space", "brackets", "quotes", "bidi", "marks", "emoji", "dots"],
    )
    async def test_strange_ones(self, ann: Actor, text: str) -> None:
        """Each is built within seconds; offsets cut the mentions out of the text."""
        started = time.monotonic()
        await construct(ann, "a", text)
        found = await call(ann, "extract", text=text[:200_000])
        for one in found["entities"]:
            assert text[one["start"] : one["end"]] == one["text"]
        assert time.monotonic() - started < 20

    @pytest.mark.parametrize("text", [HEBREW, CHINESE], ids=["hebrew", "chinese"])
    async def test_scripts(self, ann: Actor, text: str) -> None:
        """Scripts without capitals, from right to left and without spaces, are asked like others."""
        made = await construct(ann, "a", text)
        assert made["entity_count"] > 0
        found = await call(ann, "extract", text=text)
        longest = max(names(found), key=len)
        assert longest in names(await call(ann, "graph/search", query=longest, limit=50))

    async def test_chinese_question(self, ann: Actor) -> None:
        """A question without spaces names entities, too."""
        await construct(ann, "a", CHINESE)
        related = await call(ann, "retrieve", query="红楼梦的作者是谁?", limit=50)
        assert related["entity_count"] > 0

    @pytest.mark.parametrize("name", ["a\u0000b", "a\ud800"])
    async def test_what_no_database_holds(self, ann: Actor, name: str) -> None:
        refused = await ann.post(f"{API}/construct-graph", json={"document_id": name, "text": "Ada"})
        assert refused.status == 422
