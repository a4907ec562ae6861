"""Settings of the RAG plugin."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from kernel.sdk import Settings, env


class RagSettings(Settings):
    """Uploads, parsing, chunking and answering."""

    env_prefix: ClassVar[str] = "PLATFORM_RAG_"

    max_upload_size_mb: int = Field(
        50,
        ge=1,
        le=10_000,
        validation_alias=env("MAX_UPLOAD_SIZE_MB"),
        description="Largest file that can be uploaded, in MB.",
    )
    large_document_mb: float = Field(
        2,
        gt=0,
        description="Files larger than this many MB are processed in a separate lane, so they "
        "don't delay smaller ones.",
    )
    embedding_model: str = Field(
        "multilingual-e5-small",
        min_length=1,
        description="Embedding model for knowledge bases that don't specify one.",
    )
    parse_memory_mb: int = Field(2048, ge=256, description="Memory limit in MB for one parser process.")
    parse_cpu_seconds: int = Field(600, ge=1, description="CPU time limit in seconds for one parser process.")
    parse_seconds: float = Field(900, gt=0, description="Time limit in seconds for one parser process.")
    max_text_chars: int = Field(200_000_000, ge=1000, description="Most characters of text in one document.")
    max_chunks: int = Field(
        1_000_000,
        ge=1,
        description="Most passages in one document; an overlap close to the chunk size creates very many.",
    )
    answer_chars: int = Field(
        16_000, ge=1500, le=1_000_000, description="Longest prompt for the model runtime, in characters."
    )
