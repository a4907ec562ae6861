"""Settings of the export and import of knowledge bases."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from kernel.sdk import Settings


class RagExchangeSettings(Settings):
    """Limits of an import; named as settings of `rag`, which they extend."""

    env_prefix: ClassVar[str] = "PLATFORM_RAG_"
    administered: ClassVar[frozenset[str]] = frozenset({"max_import_size_mb"})

    max_import_size_mb: int = Field(
        2048, ge=1, le=100_000, description="Largest exported knowledge base that can be imported, in MB."
    )
