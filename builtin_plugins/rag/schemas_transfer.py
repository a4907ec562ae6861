"""Rows of the RAG plugin in the bundle of a team or an organization: settings, never contents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from builtin_plugins.documents.api import MAX_SIZE
from builtin_plugins.rag.filters.grammar import SentFilter
from builtin_plugins.rag.schemas import FieldName, ModelName, Name, Text

MAX_ROWS = 2000
MAX_EMBEDDING_MODELS = 16
MAX_SOURCES = 20_000  # of all pipelines: an import holds a lock while it writes them


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class KnowledgeBaseSettings(BaseModel):
    """A knowledge base's settings, as every kind of bundle has them."""

    name: Name
    description: Text = ""
    embedding_model: ModelName
    llm_model: ModelName | None = None
    chunk_size: Annotated[int, Field(ge=1, le=MAX_SIZE)]
    chunk_overlap: Annotated[int, Field(ge=0, le=MAX_SIZE)]
    date_field: FieldName | None = None
    accept_dates: bool = False

    @model_validator(mode="after")
    def _overlap_fits(self) -> Self:
        if self.chunk_overlap >= self.chunk_size:
            raise ValueError("chunk_overlap must be smaller than chunk_size")
        return self


class KnowledgeBaseRow(KnowledgeBaseSettings, _Row):
    """A knowledge base without its documents."""


class RetrievalRow(_Row):
    """A pipeline's settings for retrieval."""

    top_k: Annotated[int, Field(ge=1, le=100)] | None = None
    hybrid: bool | None = None
    metadata_filter: SentFilter | None = None


class GenerationRow(_Row):
    """A pipeline's settings for the model. Additional options of the runtime are not exported, because they
    may contain secrets.
    """

    model: ModelName | None = None
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=32_768)] | None = None


class PipelineRow(_Row):
    """A pipeline. Its knowledge bases are those of the same bundle, by name."""

    name: Name
    knowledge_bases: Annotated[list[Name], Field(max_length=100)] = []
    retrieval_config: RetrievalRow = RetrievalRow()
    generation_config: GenerationRow = GenerationRow()


class RagSections(BaseModel):
    """The sections of a bundle that the RAG plugin knows; others are nothing to it."""

    knowledge_bases: Annotated[list[KnowledgeBaseRow], Field(max_length=MAX_ROWS)] = []
    pipelines: Annotated[list[PipelineRow], Field(max_length=MAX_ROWS)] = []

    @model_validator(mode="after")
    def _is_sound(self) -> Self:
        _unique("knowledge_bases", [row.name for row in self.knowledge_bases])
        _unique("pipelines", [row.name for row in self.pipelines])
        there = {row.name for row in self.knowledge_bases}
        for row in self.pipelines:
            _unique(f"the pipeline '{row.name}'", row.knowledge_bases)
            missing = next((name for name in row.knowledge_bases if name not in there), None)
            if missing is not None:
                raise ValueError(
                    f"the pipeline '{row.name}' refers to the knowledge base '{missing}', "
                    "which is not in the bundle"
                )
        if sum(len(row.knowledge_bases) for row in self.pipelines) > MAX_SOURCES:
            raise ValueError(f"together, the pipelines refer to more than {MAX_SOURCES} knowledge bases")
        if len({row.embedding_model for row in self.knowledge_bases}) > MAX_EMBEDDING_MODELS:
            raise ValueError(f"the knowledge bases have more than {MAX_EMBEDDING_MODELS} embedding models")
        return self


SECTIONS = tuple(RagSections.model_fields)


def _unique(place: str, names: Sequence[str]) -> None:
    earlier: set[str] = set()
    for name in names:
        if name in earlier:
            raise ValueError(f"{place}: the name '{name}' appears twice")
        earlier.add(name)
