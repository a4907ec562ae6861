"""Which vector store the platform uses."""

from __future__ import annotations

from pydantic import Field

from kernel.sdk import Settings, env


class VectorSettings(Settings):
    """The choice of the vector store."""

    store: str = Field(
        "auto",
        validation_alias=env("PLATFORM_VECTOR_STORE"),
        description="Vector search: faiss (in each process), pgvector (in PostgreSQL), auto (pgvector if the "
        "database has it) or a plugin's store. Must be the same for all processes; change it only while none "
        "runs.",
    )
