"""A new version of a document: only the passages that have changed are embedded."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.inference.api import Embedded
from kernel.sdk import hookimpl
from kernel.testing import Start
from tests.builtin_plugins.rag.rag_support import make_base, record, somebody
from tests.builtin_plugins.rag.test_versions import BASES, placed, put
from tests.fakes.hash_embeddings import HashEmbeddings


class ListedEmbeddings(HashEmbeddings):
    """Embeddings that remember what they were asked to embed."""

    def __init__(self) -> None:
        super().__init__()
        self.embedded: list[str] = []

    @hookimpl
    async def embed_texts(self, model: str, texts: Sequence[str]) -> Embedded | None:
        self.embedded += texts
        return await super().embed_texts(model, texts)


async def test_only_what_has_changed_is_embedded(start_platform: Start) -> None:
    embeddings = ListedEmbeddings()
    running = await start_platform("rag", embeddings)
    ann = await somebody(running)
    base = await make_base(ann, embedding_model="all-minilm", chunk_size=300)
    parts = [f"# Part {number}\n\n" + f"Sentence {number} of a long text. " * 8 for number in range(90)]
    await placed(running, await put(ann, base, "long.md", "\n\n".join(parts)))
    first = len(embeddings.embedded)
    assert first >= 90
    embeddings.embedded.clear()
    parts[70] = "# Part 70\n\nAnother text altogether, in one sentence."
    second = await placed(running, await put(ann, base, "long.md", "\n\n".join(parts)))
    assert 0 < len(embeddings.embedded) <= 6
    assert (await record(ann, base, second["document_id"]))["status"] == "completed"
    found = await ann.post(f"{BASES}/{base}/search", json={"question": "Another text altogether"})
    assert "Another text altogether" in found.json()["items"][0]["text"]
