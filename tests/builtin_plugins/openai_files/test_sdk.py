"""OpenAI's own SDK, unmodified: files, vector stores, searches."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
import pytest_asyncio
from sqlalchemy import func, select

from builtin_plugins.openai_files.models import UploadedFile
from kernel.testing import Actor, Running
from tests.builtin_plugins.rag.rag_support import HANDBOOK, make_base, somebody, upload
from tests.fakes.deleting import delete_account
from tests.fakes.kept import Kept
from tests.fakes.protocols import with_protocols

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI
    from openai.types import VectorStore

pytestmark = pytest.mark.asyncio(loop_scope="session")

T = TypeVar("T")
HOTEL = "How much may a hotel cost per night?"
QUICKLY = 20
"""Milliseconds between two looks at a status."""


@dataclass
class StoreDesk:
    """An account with the SDK, and the platform whose worker it waits for."""

    running: Running
    ann: Actor
    client: AsyncOpenAI

    async def while_working(self, asked: Coroutine[Any, Any, T]) -> T:
        """The result of a call that waits for files to be read."""
        waiting = asyncio.create_task(asked)
        while not waiting.done():
            await self.running.run_jobs()
            await asyncio.wait([waiting], timeout=QUICKLY / 1000)
        return await waiting

    async def store_with(self, text: str = HANDBOOK, **attributes: str | float | bool) -> VectorStore:
        """A vector store with one file that has been read."""
        store = await self.client.vector_stores.create(name="Handbook")
        file = await self.client.files.create(file=named("handbook.md", text), purpose="assistants")
        done = await self.while_working(
            self.client.vector_stores.files.create_and_poll(
                file.id, vector_store_id=store.id, attributes=attributes, poll_interval_ms=QUICKLY
            )
        )
        assert done.status == "completed", done
        return store


def named(name: str, text: str) -> tuple[str, io.BytesIO]:
    """A file as the SDK takes it."""
    return name, io.BytesIO(text.encode())


def sdk(running: Running, actor: Actor) -> AsyncOpenAI:
    from openai import AsyncOpenAI  # here and below: it takes a second in each process of a run

    return AsyncOpenAI(base_url=f"{running.url}/v1/ai", api_key=str(actor.token), max_retries=0)


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["sqlite", "postgresql"])
async def running(kept: Kept, request: pytest.FixtureRequest) -> AsyncIterator[Running]:
    yield await with_protocols(kept, request.param)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def desk(running: Running) -> AsyncIterator[StoreDesk]:
    ann = await somebody(running)
    async with sdk(running, ann) as client:
        yield StoreDesk(running, ann, client)


async def test_files(desk: StoreDesk) -> None:
    made = await desk.client.files.create(file=named("notes.md", "# Notes"), purpose="user_data")
    assert (made.filename, made.bytes, made.purpose) == ("notes.md", 7, "user_data")
    assert (await desk.client.files.retrieve(made.id)) == made
    assert (await desk.client.files.content(made.id)).content == b"# Notes"
    assert made in [one async for one in desk.client.files.list()]
    assert (await desk.client.files.delete(made.id)).deleted
    assert made not in [one async for one in desk.client.files.list()]


async def test_search_with_filters(desk: StoreDesk) -> None:
    store = await desk.store_with(year=2026, region="Oslo", current=True)
    wanted: Any = {
        "type": "and",
        "filters": [
            {"type": "gte", "key": "year", "value": 2026},
            {"type": "eq", "key": "current", "value": True},
        ],
    }
    found = await desk.client.vector_stores.search(store.id, query=HOTEL, filters=wanted, max_num_results=3)
    assert "130 EUR" in found.data[0].content[0].text and 0 < found.data[0].score <= 1
    assert found.data[0].filename == "handbook.md"
    assert {"year": 2026, "region": "Oslo", "current": True}.items() <= (
        found.data[0].attributes or {}
    ).items()
    least = found.data[0].score
    strict = await desk.client.vector_stores.search(
        store.id, query=[HOTEL, "meals"], ranking_options={"score_threshold": min(1.0, least + 0.0001)}
    )
    assert all(one.score > least for one in strict.data)
    elsewhere: Any = {"type": "eq", "key": "region", "value": "Rome"}
    assert not (await desk.client.vector_stores.search(store.id, query=HOTEL, filters=elsewhere)).data


async def test_attributes_are_replaced(desk: StoreDesk) -> None:
    store = await desk.store_with(year=2025, region="Oslo")
    (file,) = (await desk.client.vector_stores.files.list(store.id)).data
    changed = await desk.client.vector_stores.files.update(
        file.id, vector_store_id=store.id, attributes={"year": 2026}
    )
    assert changed.attributes and changed.attributes["year"] == 2026 and "region" not in changed.attributes
    text = [one async for one in desk.client.vector_stores.files.content(file.id, vector_store_id=store.id)]
    assert "130 EUR" in (text[0].text or "")
    await desk.client.vector_stores.files.delete(file.id, vector_store_id=store.id)
    assert not (await desk.client.vector_stores.search(store.id, query=HOTEL)).data
    assert (await desk.client.files.retrieve(file.id)).filename == "handbook.md"


async def test_batch(desk: StoreDesk) -> None:
    store = await desk.client.vector_stores.create(name="Batch", metadata={"team": "travel"})
    files = [named(f"{at}.md", f"{HANDBOOK}\n{at}") for at in range(3)]
    files.append(("broken.bin", io.BytesIO(bytes(range(256)))))
    done = await desk.while_working(
        desk.client.vector_stores.file_batches.upload_and_poll(
            store.id, files=files, poll_interval_ms=QUICKLY
        )
    )
    counts = done.file_counts
    assert (counts.completed, counts.failed, counts.total) == (3, 1, 4), done
    failed = await desk.client.vector_stores.file_batches.list_files(
        done.id, vector_store_id=store.id, filter="failed"
    )
    assert [one.last_error and one.last_error.code for one in failed.data] == ["unsupported_file"]
    again = await desk.client.vector_stores.retrieve(store.id)
    assert (again.file_counts.completed, again.status, again.metadata) == (3, "completed", {"team": "travel"})
    assert again.usage_bytes == 3 * (len(HANDBOOK) + 2)


async def test_cancelled_batch(desk: StoreDesk) -> None:
    store = await desk.client.vector_stores.create(name="Batch")
    file = await desk.client.files.create(file=named("late.md", HANDBOOK), purpose="assistants")
    batches = desk.client.vector_stores.file_batches
    begun = await batches.create(store.id, file_ids=[file.id])
    assert (begun.status, begun.file_counts.in_progress) == ("in_progress", 1)
    ended = await batches.cancel(begun.id, vector_store_id=store.id)
    assert (ended.status, ended.file_counts.cancelled, ended.file_counts.in_progress) == ("cancelled", 1, 0)
    await desk.running.run_jobs()
    assert not (await desk.client.vector_stores.search(store.id, query=HOTEL)).data


async def test_pages(desk: StoreDesk) -> None:
    store = await desk.client.vector_stores.create(name="Pages")
    listing = desk.client.vector_stores.files
    names = []
    for at in range(5):
        file = await desk.client.files.create(file=named(f"{at}.md", f"# {at}"), purpose="assistants")
        await listing.create(store.id, file_id=file.id)
        names.append(file.id)
    assert [one.id async for one in listing.list(store.id, limit=2, order="asc")] == names
    assert [one.id async for one in listing.list(store.id, limit=2)] == names[::-1]
    before = await listing.list(store.id, order="asc", before=names[3], limit=2)
    assert [one.id for one in before.data] == names[1:3]
    mine = [one.id async for one in desk.client.vector_stores.list(limit=2)]
    assert store.id in mine and len(set(mine)) == len(mine)


async def test_documents_from_elsewhere_are_files_as_well(desk: StoreDesk) -> None:
    base = await make_base(desk.ann)
    await upload(desk.ann, base)
    await desk.running.run_jobs()
    (found,) = (await desk.client.vector_stores.search(base, query="hotel", max_num_results=1)).data
    assert (await desk.client.files.retrieve(found.file_id)).filename == "handbook.md"
    assert (await desk.client.files.content(found.file_id)).content == HANDBOOK.encode()
    store = await desk.client.vector_stores.retrieve(base)
    assert [one.id for one in (await desk.client.vector_stores.files.list(store.id)).data] == [found.file_id]


async def test_deleted_file_leaves_its_stores(desk: StoreDesk) -> None:
    store = await desk.store_with()
    (file,) = (await desk.client.vector_stores.files.list(store.id)).data
    await desk.client.files.delete(file.id)
    assert not (await desk.client.vector_stores.search(store.id, query=HOTEL)).data
    gone = await desk.client.vector_stores.delete(store.id)
    assert (gone.id, gone.deleted) == (store.id, True)


async def test_strangers_find_nothing(desk: StoreDesk) -> None:
    from openai import NotFoundError, UnprocessableEntityError

    store = await desk.store_with()
    (file,) = (await desk.client.vector_stores.files.list(store.id)).data
    async with sdk(desk.running, await somebody(desk.running)) as other:
        refused: list[Coroutine[Any, Any, Any]] = [
            other.vector_stores.retrieve(store.id),
            other.vector_stores.search(store.id, query=HOTEL),
            other.vector_stores.delete(store.id),
            other.vector_stores.files.retrieve(file.id, vector_store_id=store.id),
            other.files.retrieve(file.id),
            other.files.content(file.id),
            other.files.delete(file.id),
        ]
        for one in refused:
            with pytest.raises(NotFoundError):
                await one
        own = await other.vector_stores.create(name="Own")
        with pytest.raises(NotFoundError):
            await other.vector_stores.files.create(own.id, file_id=file.id)
        with pytest.raises(UnprocessableEntityError) as error:
            await other.vector_stores.file_batches.create(own.id, file_ids=[file.id])
        assert error.value.param == "file_ids.0"
        assert store.id not in [one.id async for one in other.vector_stores.list()]


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("vector_stores", {"expires_after": {"anchor": "last_active_at", "days": 1}}, "expires_after"),
        ("vector_stores", {"file_ids": ["file-x"]}, "file_ids.0"),
        (
            "vector_stores",
            {
                "chunking_strategy": {
                    "type": "static",
                    "static": {"max_chunk_size_tokens": 4096, "chunk_overlap_tokens": 0},
                }
            },
            "chunking_strategy.static.max_chunk_size_tokens",
        ),
        ("vector_stores/@/search", {"query": " "}, None),
        ("vector_stores/@/search", {"query": "x", "max_num_results": 51}, "max_num_results"),
        ("vector_stores/@/search", {"query": "x", "filters": {"type": "eq", "key": "no", "value": 1}}, None),
        ("vector_stores/@/file_batches", {}, "file_ids"),
    ],
)
async def test_errors_name_the_field(
    desk: StoreDesk, path: str, body: dict[str, Any], param: str | None
) -> None:
    store = await desk.client.vector_stores.create(name="Errors")
    answer = await desk.ann.post(f"/v1/{path.replace('@', store.id)}", json=body)
    error = answer.json()["error"]
    assert (answer.status, error["type"]) == (422, "invalid_request_error"), answer.body
    assert param is None or error["param"] == param
    assert error["param"].split(".")[0] in ("query", "filters", *body, param)


async def test_attributes_that_no_field_can_have(desk: StoreDesk) -> None:
    from openai import UnprocessableEntityError

    store = await desk.store_with(year=2026)
    (file,) = (await desk.client.vector_stores.files.list(store.id)).data
    for name, value in (("year", "soon"), ("no-name", 1), ("filename", "x")):
        with pytest.raises(UnprocessableEntityError) as error:
            await desk.client.vector_stores.files.update(
                file.id, vector_store_id=store.id, attributes={name: value}
            )
        assert error.value.param == f"attributes.{name}"


@pytest.mark.parametrize("name", ["no-name", "filename", "source"])
async def test_refused_attributes_leave_nothing_in_the_store(desk: StoreDesk, name: str) -> None:
    from openai import UnprocessableEntityError

    store = await desk.client.vector_stores.create(name="Empty")
    files = [
        await desk.client.files.create(file=named(f"{one}.md", one), purpose="assistants") for one in "ab"
    ]
    batch: Any = [{"file_id": files[0].id}, {"file_id": files[1].id, "attributes": {name: 1}}]
    with pytest.raises(UnprocessableEntityError) as error:
        await desk.client.vector_stores.files.create(store.id, file_id=files[0].id, attributes={name: 1})
    assert error.value.param == f"attributes.{name}"
    with pytest.raises(UnprocessableEntityError) as error:
        await desk.client.vector_stores.file_batches.create(store.id, files=batch)
    assert error.value.param == f"files.1.attributes.{name}"
    assert (await desk.client.vector_stores.files.list(store.id)).data == []


async def test_files_are_their_owners_alone(desk: StoreDesk) -> None:
    """An administrator sees all knowledge bases, and lists and deletes only files of its own."""
    made = await desk.client.files.create(file=named("mine.md", "# Mine"), purpose="assistants")
    admin = await somebody(desk.running, role="admin")
    assert made.id not in str((await admin.get("/v1/files")).json())
    assert [(await call(f"/v1/files/{made.id}")).status for call in (admin.get, admin.delete)] == [404, 404]
    assert (await desk.client.files.retrieve(made.id)) == made


async def test_ids_that_are_none(desk: StoreDesk) -> None:
    place = f"/v1/vector_stores/{(await desk.client.vector_stores.create(name='Ids')).id}/files"
    for path in ("x", "file-", "x/content"):
        assert (await desk.ann.get(f"{place}/{path}")).status == 404
    assert [(await desk.ann.get(f"{place}?{side}=x")).status for side in ("after", "before")] == [404, 404]


async def test_retried_upload_is_one_file(desk: StoreDesk) -> None:
    sent: Any = {"file": named("once.md", "# Once"), "purpose": "assistants"}
    first = await desk.client.files.create(**sent)
    retry = {"x-stainless-retry-count": "1"}
    sent["file"] = named("once.md", "# Once")
    assert (await desk.client.files.create(**sent, extra_headers=retry)).id == first.id
    sent["file"] = named("once.md", "# Once")
    assert (await desk.client.files.create(**sent)).id != first.id


async def test_upload_that_ends_after_its_account_keeps_nothing(desk: StoreDesk) -> None:
    leaving = await somebody(desk.running)

    async def body() -> AsyncIterator[bytes]:
        start = '--x\r\nContent-Disposition: form-data; name="file"; filename="late.md"\r\n\r\n# La'
        yield start.encode()
        await delete_account(desk.running, leaving)
        purpose = '\r\n--x\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nassistants\r\n--x--\r\n'
        yield f"te{purpose}".encode()

    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = await leaving.post("/v1/ai/files", data=body(), headers=headers)
    assert answer.status == 401, answer.body
    mine = select(func.count()).where(UploadedFile.owner_id == leaving.user["id"])
    assert await desk.running.platform.database.read(lambda session: session.scalar(mine)) == 0


async def test_retried_store_is_one_store(desk: StoreDesk) -> None:
    file = await desk.client.files.create(file=named("once.md", "# Once"), purpose="assistants")
    sent: Any = {"name": "Once", "file_ids": [file.id], "metadata": {"team": "travel"}}
    retry: Any = {"extra_headers": {"x-stainless-retry-count": "1"}}
    first = await desk.client.vector_stores.create(**sent)
    again = await desk.client.vector_stores.create(**sent, **retry)
    assert (again.id, again.file_counts.total, again.metadata) == (first.id, 1, {"team": "travel"})
    assert (await desk.client.vector_stores.create(**sent)).id not in (first.id,)
    assert (await desk.client.vector_stores.create(name="Other", **retry)).id != first.id
    both = await asyncio.gather(*(desk.client.vector_stores.create(name="Twins", **retry) for _ in range(2)))
    assert both[0].id == both[1].id
    async with sdk(desk.running, await somebody(desk.running)) as other:
        assert (await other.vector_stores.create(name="Other", **retry)).id not in (first.id, both[0].id)


async def test_request_with_a_key_is_made_once(desk: StoreDesk) -> None:
    keyed: Any = {"extra_headers": {"Idempotency-Key": "k-1"}}
    first = await desk.client.vector_stores.create(name="Keyed", **keyed)
    assert (await desk.client.vector_stores.create(name="Keyed", **keyed)).id == first.id
    assert (await desk.client.vector_stores.create(name="Another", **keyed)).id != first.id
    file = await desk.client.files.create(file=named("once.md", "# Once"), purpose="assistants")
    batches = desk.client.vector_stores.file_batches
    made = await batches.create(first.id, file_ids=[file.id], **keyed)
    await batches.cancel(made.id, vector_store_id=first.id)
    again = await batches.create(first.id, file_ids=[file.id], **keyed)
    assert (again.id, again.status) == (made.id, "cancelled")
    await desk.client.vector_stores.delete(first.id)
    assert (await desk.client.vector_stores.create(name="Keyed", **keyed)).id != first.id


async def test_blocking_client(desk: StoreDesk) -> None:
    """The synchronous client, with the base address of OpenAI's own paths."""
    from openai import OpenAI

    def use(client: OpenAI) -> str:
        store = client.vector_stores.create(name="Blocking")
        client.vector_stores.files.upload_and_poll(
            vector_store_id=store.id, file=named("handbook.md", HANDBOOK), poll_interval_ms=QUICKLY
        )
        found = client.vector_stores.search(store.id, query=HOTEL)
        return found.data[0].content[0].text

    with OpenAI(base_url=f"{desk.running.url}/v1", api_key=str(desk.ann.token), max_retries=0) as client:
        assert "130 EUR" in await desk.while_working(asyncio.to_thread(use, client))


async def test_file_deleted_while_it_is_attached(desk: StoreDesk) -> None:
    """Whichever comes first: what was deleted is in no store afterwards."""
    store = await desk.client.vector_stores.create(name="Race")
    for number in range(5):
        file = await desk.client.files.create(file=named(f"{number}.md", f"# {number}"), purpose="assistants")
        body = {"file_id": file.id}
        attached, deleted = await asyncio.gather(
            desk.ann.post(f"/v1/vector_stores/{store.id}/files", json=body),
            desk.ann.delete(f"/v1/files/{file.id}"),
        )
        assert attached.status in (200, 404) and deleted.status == 200
    assert (await desk.client.vector_stores.files.list(store.id)).data == []
