"""The difference of two versions of a document: which sentences, where, and for whom."""

from __future__ import annotations

from typing import Any

import pytest

from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import path_of, somebody
from tests.builtin_plugins.rag.test_versions import NEW, OLD, placed, put

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def compared(actor: Actor, base: str, document: str, rest: str = "") -> dict[str, Any]:
    answer = await actor.get(path_of(base, document, f"/difference{rest}"))
    assert answer.status == 200, answer.body
    return dict(answer.json())


def texts(found: dict[str, Any]) -> list[tuple[str, str | None, str | None]]:
    """Each change's kind and both texts."""
    return [
        (one["kind"], *(one[side] and one[side]["text"] for side in ("earlier", "later")))
        for one in found["items"]
    ]


async def test_sentences_that_differ(running: Running, ann: Actor, base: str) -> None:
    """From the earlier to the later one, whichever is asked for; the places are those in the texts."""
    tail = "".join(f"Paragraph {n} is about the rooms of house {n}.\n\n" for n in range(200))
    first = await placed(running, await put(ann, base, "a.md", OLD + "\nGone soon.\n\n" + tail))
    added = "The quay opens at six. It closes at ten.\n"
    second = await placed(running, await put(ann, base, "a.md", NEW + "\n" + tail + added))
    one = OLD.split("\n")[2]
    wanted = [
        ("changed", f"{one}\n\nGone soon.", NEW.split("\n")[2]),
        ("added", None, added.strip()),
    ]
    ids = {"earlier": first["document_id"], "later": second["document_id"]}
    asked = [
        (second, ""),
        (second, f"?against={first['document_id']}"),
        (first, f"?against={second['document_id']}"),
    ]
    for document, rest in asked:
        found = await compared(ann, base, document["document_id"], rest)
        assert texts(found) == wanted
        assert {side: found[side]["document_id"] for side in ids} == ids
        assert (found["earlier"]["version"], found["later"]["version"]) == (1, 2)
        by = {"id": ann.user["id"], "username": ann.user["username"]}
        assert [found[side]["uploaded_by"] for side in ids] == [by, by]
    for change in found["items"]:
        for side in ("earlier", "later"):
            part = change[side]
            if part is not None:
                content = (await ann.get(path_of(base, ids[side], "/content"))).body.decode()
                assert content[part["char_start"] : part["char_end"]] == part["text"]
                listed = (await ann.get(path_of(base, ids[side], "/chunks?limit=500"))).json()["items"]
                passage = listed[part["chunk_index"]]
                assert passage["chunk_id"] == part["chunk_id"]
                assert passage["char_start"] <= part["char_start"] < passage["char_end"]
    page = await compared(ann, base, second["document_id"], "?limit=1&offset=1")
    assert (texts(page), page["total"]) == (wanted[1:], 2)


async def test_what_can_not_be_compared(running: Running, ann: Actor, base: str) -> None:
    first = await placed(running, await put(ann, base, "a.md", OLD))
    other = await placed(running, await put(ann, base, "b.md", NEW))
    alone = await ann.get(path_of(base, first["document_id"], "/difference"))
    assert (alone.status, alone.json()["code"]) == (409, "nothing_to_compare")
    foreign = f"/difference?against={other['document_id']}"
    assert (await ann.get(path_of(base, first["document_id"], foreign))).status == 404
    failed = await placed(running, await put(ann, base, "a.md", " \n"))
    unread = await ann.get(path_of(base, failed["document_id"], "/difference"))
    assert (unread.status, unread.json()["code"]) == (409, "nothing_to_compare")
    await placed(running, await put(ann, base, "a.md", NEW))
    last = (await ann.get(path_of(base, first["document_id"], "/versions"))).json()["items"][0]
    assert (await compared(ann, base, last["document_id"]))["earlier"]["version"] == 1  # not the failed one
    stranger = await somebody(running)
    assert (await stranger.get(path_of(base, last["document_id"], "/difference"))).status == 404
