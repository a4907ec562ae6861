"""Files in vector stores: documents of the knowledge base, with attributes for their fields."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from builtin_plugins.openai_files.errors import FileNotKnown
from builtin_plugins.openai_files.models import UploadedFile
from builtin_plugins.openai_files.names import NOTHING, file_of, key_of, row_in, store_name
from builtin_plugins.openai_files.schemas import (
    Attributes,
    ContentPage,
    FileStatus,
    LastError,
    StoreFileCreate,
    StoreFileOut,
    StoreFileQuery,
    TextContent,
)
from builtin_plugins.openai_files.services import files
from builtin_plugins.openai_files.services.stores import page_of
from builtin_plugins.rag import api as rag
from kernel.sdk import Caller, Unavailable, Unprocessable

_STATUSES: Final[Mapping[str, FileStatus]] = {
    "processing": "in_progress",
    "completed": "completed",
    "failed": "failed",
}
_OURS: Final = {ours: theirs for theirs, ours in _STATUSES.items()}


async def attach(caller: Caller, store_id: str, request: StoreFileCreate) -> StoreFileOut:
    """Put a file of the caller's into a vector store; again, only its attributes change.

    Raises FileNotKnown and what storing a document raises.
    """
    base_id = row_in(store_id)
    await caller.platform.resource(rag.CATALOG).check_own(caller, base_id)
    check_chunking(request.chunking_strategy)
    file = await files.get(caller, request.file_id)
    await check_attributes(caller, base_id, request.attributes)
    return render(await put(caller, base_id, file, request.attributes))


async def put(
    caller: Caller, base_id: str, file: UploadedFile, attributes: Attributes | None
) -> rag.CatalogDocument:
    """The document of a file, which is stored durably, to be read; its attributes must be checked.

    Raises FileNotKnown, and what `put_document` raises.
    """
    path = await caller.platform.blobs.local(file.sha256)
    if not await asyncio.to_thread(path.exists):
        raise FileNotKnown()
    document = rag.PluginDocument(key_of(file.id), file.filename, rag.read_portions(path))
    document_id = await caller.platform.hooks.ask(rag.put_document, caller, base_id, document)
    if document_id is None:
        raise Unavailable("Documents can't be stored now; try again later")
    if not await files.among(caller, [file.id]):  # it was deleted meanwhile, with its documents
        await caller.platform.hooks.ask(rag.drop_document, caller, base_id, key_of(file.id))
        raise FileNotKnown()
    if attributes:
        return await set_attributes(caller, base_id, document_id, attributes)
    return await caller.platform.resource(rag.CATALOG).document(caller, base_id, document_id)


def check_chunking(strategy: Mapping[str, Any] | None) -> None:
    """Refuse a size of passages for one file. Raises Unprocessable."""
    if strategy is not None and strategy.get("type") != "auto":
        message = "must be auto: set the size of passages when you make the vector store"
        raise Unprocessable.field(("body", "chunking_strategy"), message)


async def set_attributes(
    caller: Caller, base_id: str, document_id: str, attributes: Attributes
) -> rag.CatalogDocument:
    """Let these be the attributes that were set of a document. Raises Unprocessable, NotOwner."""
    with _named_attributes("attributes"):
        return await caller.platform.resource(rag.CATALOG).set_fields(
            caller, base_id, document_id, attributes, _kinds(attributes)
        )


async def check_attributes(
    caller: Caller, base_id: str, attributes: Attributes | None, *place: str | int
) -> None:
    """Refuse attributes that no file can have, before anything is stored. Raises Unprocessable."""
    if attributes:
        with _named_attributes(*place, "attributes"):
            await caller.platform.resource(rag.CATALOG).check_fields(
                caller, base_id, attributes, _kinds(attributes)
            )


@contextmanager
def _named_attributes(*place: str | int) -> Iterator[None]:
    """Say of a field's mistake where the request has it."""
    try:
        yield
    except Unprocessable as error:
        moved = [{**one, "loc": ["body", *place, *one["loc"][1:]]} for one in error.detail]
        raise Unprocessable(moved) from None


async def update(caller: Caller, store_id: str, file_id: str, attributes: Attributes) -> StoreFileOut:
    """Replace the attributes of a file in a vector store. Raises FileNotKnown, NotOwner, Unprocessable."""
    base_id = row_in(store_id)
    await caller.platform.resource(rag.CATALOG).check_own(caller, base_id)
    document = await find(caller, base_id, file_id)
    return render(await set_attributes(caller, base_id, document.id, attributes))


def _kinds(attributes: Attributes) -> dict[str, Any]:
    return {name: _kind(one) for name, one in attributes.items()}


def _kind(value: str | bool | float) -> Any:
    if isinstance(value, bool):
        return "boolean"
    return "text" if isinstance(value, str) else "number"


async def find(caller: Caller, base_id: str, file_id: str) -> rag.CatalogDocument:
    """The document of a file, or the document with this id. Raises KnowledgeBaseNotFound, FileNotKnown."""
    catalog, row = caller.platform.resource(rag.CATALOG), row_in(file_id)
    await catalog.base(caller, base_id)
    for name in (key_of(row), row) if row != NOTHING else ():
        try:
            return await catalog.document(caller, base_id, name)
        except rag.DocumentNotFound:
            continue
    raise FileNotKnown("There is no such file in this vector store")


async def list_page(caller: Caller, store_id: str, query: StoreFileQuery) -> tuple[list[StoreFileOut], bool]:
    """The files of a vector store, and whether there are more. Raises Unprocessable."""
    base_id, catalog = row_in(store_id), caller.platform.resource(rag.CATALOG)
    if query.filter == "cancelled":
        await catalog.base(caller, base_id)
        return [], False
    cursors = {
        side: (await find(caller, base_id, name)).id
        for side, name in (("after", query.after), ("before", query.before))
        if name is not None
    }
    page = page_of(query.model_copy(update=cursors))
    status = None if query.filter is None else _OURS[query.filter]
    rows, more = await catalog.documents(caller, base_id, page, status)
    return [render(row) for row in rows], more


async def remove(caller: Caller, store_id: str, file_id: str) -> str:
    """Take a file out of a vector store: its document goes, with a receipt, and the file stays."""
    base_id = row_in(store_id)
    await caller.platform.resource(rag.CATALOG).check_own(caller, base_id)
    document = await find(caller, base_id, file_id)
    hooks = caller.platform.hooks
    if document.key is not None:
        await hooks.ask(rag.drop_document, caller, base_id, document.key)
    else:
        await hooks.ask(rag.delete_document, caller, base_id, document.id)
    return file_of(document.key, document.id)


async def content(caller: Caller, store_id: str, file_id: str) -> ContentPage:
    """The text of a file as it was read. Raises FileNotKnown, PayloadTooLarge."""
    document = await find(caller, row_in(store_id), file_id)
    text = await caller.platform.hooks.ask(
        rag.read_document, caller, document.knowledge_base_id, document.id, None
    )
    return ContentPage(data=[] if text is None or not text.text else [TextContent(text=text.text)])


def render(entry: rag.CatalogDocument) -> StoreFileOut:
    """A file in a vector store as clients see it."""
    error = None
    if entry.status == "failed":
        error = LastError(code="invalid_file", message=entry.error or "The file could not be read")
    return StoreFileOut(
        id=file_of(entry.key, entry.id),
        created_at=int(entry.uploaded_at.timestamp()),
        vector_store_id=store_name(entry.knowledge_base_id),
        status=_STATUSES.get(entry.status, "completed"),
        last_error=error,
        usage_bytes=entry.size_bytes,
        attributes=attributes_of(entry.metadata),
        filename=entry.filename,
    )


def attributes_of(metadata: Mapping[str, Any]) -> Attributes:
    """The values of fields as attributes: of several, and of persons, a text."""
    return {name: _simple(value) for name, value in metadata.items()}


def _simple(value: Any) -> str | bool | int | float:
    if isinstance(value, list):
        return ", ".join(str(_simple(one)) for one in value)
    if isinstance(value, dict):
        return str(value.get("name") or value.get("id"))
    return value if isinstance(value, str | bool | int | float) else str(value)
