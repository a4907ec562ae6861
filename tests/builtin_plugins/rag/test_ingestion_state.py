"""The ingestion of a knowledge base as a whole: how far it is, cancelling all of it, trying again."""

from __future__ import annotations

from kernel.testing import Start
from tests.builtin_plugins.rag.rag_support import HANDBOOK, ask, make_base, make_pipeline, somebody, upload
from tests.fakes.hash_embeddings import HashEmbeddings


async def test_counts_cancel_and_retry(start_platform: Start, database_url: str | None) -> None:
    """What waits is counted and has a place; cancelled documents are failed ones, and can be tried again."""
    running = await start_platform("rag", HashEmbeddings(), env={"DATABASE_URL": database_url})
    ann, bob = await somebody(running), await somebody(running)
    base, other = await make_base(ann), await make_base(bob)
    path = f"/v1/rag/knowledge-bases/{base}/ingestion"
    assert (await ann.get(path)).json()["queue_position"] is None
    await upload(bob, other, "theirs.txt", "Another text.")
    for number in range(3):
        await upload(ann, base, f"{number}.md", f"{HANDBOOK}\nRoom {number}.")
    waiting = (await ann.get(path)).json()
    assert (waiting["processing"], waiting["queue_position"], waiting["eta_seconds"]) == (3, 2, None)
    assert (await ann.post(f"{path}/cancel")).json() == {"documents": 3}
    await running.run_jobs()
    cancelled = (await ann.get(path)).json()
    assert (cancelled["processing"], cancelled["completed"], cancelled["failed"]) == (0, 0, 3)
    assert (await ann.post(f"{path}/retry")).json() == {"documents": 3}
    assert (await ann.post(f"{path}/retry")).json() == {"documents": 0}
    await running.run_jobs()
    done = (await ann.get(path)).json()
    assert (done["processing"], done["completed"], done["failed"]) == (0, 3, 0)
    assert done["documents_per_minute"] > 0 and done["passages_per_second"] > 0
    assert (await ask(ann, await make_pipeline(ann, base), "What may a hotel cost?"))["sources"]
    for action in ("", "/cancel", "/retry"):
        answer = await (bob.post(path + action) if action else bob.get(path))
        assert answer.status == 404


async def test_small_documents_together(start_platform: Start) -> None:
    """Texts of two knowledge bases in one batch; one without text fails alone, a deleted one is gone."""
    running = await start_platform("rag", HashEmbeddings())
    ann = await somebody(running)
    first, second = await make_base(ann), await make_base(ann, chunk_size=100, chunk_overlap=0)
    for number in range(20):
        await upload(
            ann, first if number % 2 else second, f"{number}.txt", f"Text {number} of several. " * 20
        )
    await upload(ann, first, "blank.txt", " \n\t" * 50)
    gone = (await upload(ann, first, "gone.txt", "Soon deleted.")).json()["document_id"]
    assert (await ann.delete(f"/v1/rag/knowledge-bases/{first}/documents/{gone}")).status == 200
    await running.run_jobs()
    for base, count in ((first, 11), (second, 10)):
        listed = (await ann.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"]
        assert len(listed) == count
        for one in listed:
            wanted = "failed" if one["filename"] == "blank.txt" else "completed"
            assert (one["status"], one["chunk_count"] > 0) == (wanted, wanted == "completed")
