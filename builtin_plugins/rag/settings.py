"""Settings of the RAG plugin."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from kernel.sdk import Settings, env


class RagSettings(Settings):
    """Uploads, parsing, chunking and answering."""

    env_prefix: ClassVar[str] = "PLATFORM_RAG_"

    max_upload_size_mb: int = Field(
        50, ge=1, le=10_000, validation_alias=env("MAX_UPLOAD_SIZE_MB"), description="Largest uploaded file."
    )
    large_document_mb: float = Field(
        2, gt=0, description="Files above this size wait in a lane of their own, and hold up no smaller ones."
    )
    embedding_model: str = Field(
        "all-minilm", min_length=1, description="Embedding model of a knowledge base that names none."
    )
    parse_memory_mb: int = Field(2048, ge=256, description="Address space of one parser process.")
    parse_cpu_seconds: int = Field(600, ge=1, description="Processor time of one parser process.")
    parse_seconds: float = Field(900, gt=0, description="Clock time of one parser process.")
    max_text_chars: int = Field(
        200_000_000, ge=1000, description="Most characters of text that one document may have."
    )
    max_chunks: int = Field(
        1_000_000,
        ge=1,
        description="Most passages of one document; an overlap near the size makes very many.",
    )
    answer_chars: int = Field(
        16_000, ge=1500, le=1_000_000, description="Most characters of a prompt to the model runtime."
    )
