"""Bodies, queries and answers in OpenAI's shapes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from kernel.sdk import READABLE, example

Json = dict[str, Any]
Id = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Attributes = dict[Annotated[str, StringConstraints(min_length=1, max_length=64)], str | bool | int | float]
Labels = dict[
    Annotated[str, StringConstraints(max_length=64)], Annotated[str, StringConstraints(max_length=512)]
]
StoreName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=255), READABLE]
FileStatus = Literal["in_progress", "completed", "failed", "cancelled"]
Purpose = Literal["assistants", "user_data"]
MOST_ATTRIBUTES = 16


def _refuse_expiry(value: Any) -> None:
    if value is not None:
        raise PydanticCustomError("value_error", "nothing expires here; leave it out, and delete instead")


NoExpiry = Annotated[None, BeforeValidator(_refuse_expiry)]
_NO_EXPIRY = "Not supported: must be null or absent."


class FileOut(BaseModel):
    """A file."""

    id: str
    object: Literal["file"] = "file"
    bytes: int
    created_at: int
    expires_at: None = None
    filename: str
    purpose: str
    status: Literal["uploaded", "processed", "error"] = "processed"
    status_details: str | None = None


class DeletedOut(BaseModel):
    """What was deleted."""

    id: str
    object: str
    deleted: bool = True


class CursorQuery(BaseModel):
    """A page of a list."""

    limit: int = Field(20, ge=1, le=100)
    order: Literal["asc", "desc"] = Field("desc", description="By the time of creation.")
    after: Id | None = Field(None, description="The page begins behind this id.")
    before: Id | None = Field(None, description="The page ends before this id.")


class FileQuery(CursorQuery):
    """A page of files."""

    limit: int = Field(10_000, ge=1, le=10_000)
    purpose: str | None = Field(None, max_length=32)


class StoreFileQuery(CursorQuery):
    """A page of the files in a vector store."""

    filter: FileStatus | None = Field(None, description="Only those with this status.")


class ListOut(BaseModel):
    """A page of a list."""

    object: Literal["list"] = "list"
    data: list[Any]
    first_id: str | None
    last_id: str | None
    has_more: bool


class FilePage(ListOut):
    """A page of files."""

    data: list[FileOut]


class StaticChunking(BaseModel):
    """Sizes of passages."""

    max_chunk_size_tokens: int = Field(ge=100, le=2048)
    chunk_overlap_tokens: int = Field(ge=0)


class ChunkingStrategy(BaseModel):
    """How documents are cut into passages."""

    type: Literal["auto", "static"]
    static: StaticChunking | None = None


class StoreCreate(BaseModel):
    """A new vector store, which is a private knowledge base of the caller."""

    model_config = ConfigDict(extra="ignore", **example(name="Travel handbook"))

    name: StoreName | None = None
    description: str | None = Field(None, max_length=2000)
    file_ids: list[Id] = Field([], max_length=2000)
    metadata: Labels | None = Field(None, max_length=16)
    chunking_strategy: ChunkingStrategy | None = Field(
        None, description="`static` sets the size of passages; a token counts as four characters."
    )
    expires_after: NoExpiry = Field(None, description=_NO_EXPIRY)


class StoreUpdate(BaseModel):
    """Fields of a vector store that can be changed."""

    model_config = ConfigDict(extra="ignore", **example(name="Travel handbook 2026"))

    name: StoreName | None = None
    metadata: Labels | None = Field(None, max_length=16)
    expires_after: NoExpiry = Field(None, description=_NO_EXPIRY)


class FileCounts(BaseModel):
    """How many files have each status."""

    in_progress: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    total: int = 0


class StoreOut(BaseModel):
    """A vector store."""

    id: str
    object: Literal["vector_store"] = "vector_store"
    created_at: int
    name: str
    description: str
    usage_bytes: int = Field(description="The bytes of the original files.")
    file_counts: FileCounts
    status: Literal["in_progress", "completed"]
    expires_after: None = None
    expires_at: None = None
    last_active_at: int | None = None
    metadata: dict[str, str]


class StorePage(ListOut):
    """A page of vector stores."""

    data: list[StoreOut]


class LastError(BaseModel):
    """Why a file is not searched."""

    code: Literal["server_error", "unsupported_file", "invalid_file"]
    message: str


class StoreFileOut(BaseModel):
    """A file in a vector store, which is a document of the knowledge base."""

    id: str
    object: Literal["vector_store.file"] = "vector_store.file"
    created_at: int
    vector_store_id: str
    status: FileStatus
    last_error: LastError | None
    usage_bytes: int
    attributes: Attributes
    chunking_strategy: Json = Field({"type": "other"}, description="The knowledge base's own.")
    filename: str


class StoreFilePage(ListOut):
    """A page of files in a vector store."""

    data: list[StoreFileOut]


class StoreFileCreate(BaseModel):
    """A file to put into a vector store."""

    model_config = ConfigDict(
        extra="ignore", **example(file_id="file-3f2c9d1e7a544b0e9c1d2f6a8e5b7c90", attributes={"year": 2026})
    )

    file_id: Id
    attributes: Attributes | None = Field(
        None,
        max_length=MOST_ATTRIBUTES,
        description="Values of fields. A field that the knowledge base lacks is declared by its first value.",
    )
    chunking_strategy: Json | None = Field(
        None, description="`auto` only: passages have the size that the vector store was made with."
    )


class StoreFileUpdate(BaseModel):
    """All attributes of a file; those that are left out are removed."""

    model_config = ConfigDict(extra="ignore", **example(attributes={"year": 2026, "region": "Oslo"}))

    attributes: Attributes | None = Field(max_length=MOST_ATTRIBUTES)


class BatchCreate(BaseModel):
    """Files to put into a vector store together: by their ids, or each with its attributes."""

    model_config = ConfigDict(extra="ignore", **example(file_ids=["file-3f2c9d1e7a544b0e9c1d2f6a8e5b7c90"]))

    file_ids: list[Id] = Field([], max_length=2000)
    files: list[StoreFileCreate] = Field([], max_length=2000)
    attributes: Attributes | None = Field(None, max_length=MOST_ATTRIBUTES)
    chunking_strategy: Json | None = None


class BatchOut(BaseModel):
    """A batch of files, and how far it is."""

    id: str
    object: Literal["vector_store.files_batch"] = "vector_store.files_batch"
    created_at: int
    vector_store_id: str
    status: FileStatus
    file_counts: FileCounts


class RankingOptions(BaseModel):
    """How results are ranked: only the threshold is used, as there is one ranking."""

    model_config = ConfigDict(extra="ignore")

    ranker: str | None = Field(None, max_length=64)
    score_threshold: float = Field(0.0, ge=0, le=1)


Query = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=8000)]


class StoreSearch(BaseModel):
    """A search in a vector store."""

    model_config = ConfigDict(
        extra="ignore",
        **example(query="How much may a hotel cost?", filters={"type": "eq", "key": "year", "value": 2026}),
    )

    query: Query | Annotated[list[Query], Field(min_length=1, max_length=8)]
    filters: Json | None = Field(None, description="OpenAI's attribute filters; the grammar is that of rag.")
    max_num_results: int = Field(10, ge=1, le=50)
    ranking_options: RankingOptions = RankingOptions()
    rewrite_query: bool = Field(
        False, description="Accepted, and not done: `search_query` says what was searched for."
    )


class TextContent(BaseModel):
    """A piece of text."""

    type: Literal["text"] = "text"
    text: str


class StoreSearchResult(BaseModel):
    """A passage, and the file that it is from."""

    file_id: str
    filename: str
    score: float
    attributes: Attributes
    content: list[TextContent]


class SearchPage(BaseModel):
    """The passages, best first."""

    object: Literal["vector_store.search_results.page"] = "vector_store.search_results.page"
    search_query: list[str]
    data: list[StoreSearchResult]
    has_more: bool = False
    next_page: None = None


class ContentPage(BaseModel):
    """The text of a file in a vector store, as it was read."""

    object: Literal["vector_store.file_content.page"] = "vector_store.file_content.page"
    data: list[TextContent]
    has_more: bool = False
    next_page: None = None
