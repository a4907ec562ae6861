"""Which vector store the platform uses."""

from __future__ import annotations

from pydantic import Field

from kernel.sdk import Settings, env


class VectorSettings(Settings):
    """The choice of the vector store."""

    store: str = Field(
        "auto",
        validation_alias=env("PLATFORM_VECTOR_STORE"),
        description="Vector search: faiss (in each process), pgvector (in PostgreSQL), milvus (in a "
        "cluster of its own), auto (pgvector if the database has it) or a plugin's store. Must be the same "
        "for all processes; change it only while none runs, but to milvus also one process after the other.",
    )
    save_indexes: bool = Field(
        True,
        validation_alias=env("PLATFORM_VECTORS_SAVE_INDEXES"),
        description="Keep the search indexes of knowledge bases with 2,000 passages or more in "
        "PLATFORM_HOME/vectors, so that the first search after a start doesn't wait until they are built. "
        "Turn it off if PLATFORM_HOME is on a network disk that several machines share.",
    )
    clear_seconds: float = Field(
        3600.0,
        ge=1,
        validation_alias=env("PLATFORM_VECTORS_CLEAR_SECONDS"),
        description="Within this time, words and vectors of deleted documents are gone from the files of "
        "saved search indexes, while the platform runs; building such an index again takes about 10 seconds "
        "of one core for 100,000 passages.",
    )
