"""Settings of the embeddings plugin."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from kernel.sdk import Settings


class EmbeddingsSettings(Settings):
    """How texts become vectors on this machine."""

    env_prefix: ClassVar[str] = "PLATFORM_EMBEDDINGS_"

    engine: Literal["auto", "openvino", "sentence-transformers"] = Field(
        "auto",
        description="Engine for the local models; sentence-transformers supports all-MiniLM-L6-v2 only.",
    )
    precision: Literal["auto", "fp32", "bf16"] = Field(
        "auto", description="Precision; auto uses bf16 if the processor supports it."
    )
    weights: Path | None = Field(
        None,
        description="Folder with the published files of all-MiniLM-L6-v2; those of the package when unset.",
    )
    e5_file: Path | None = Field(
        None,
        description="Packed file of multilingual-e5-small (e5-small-q4.bin); that of the package when unset.",
    )
    threads: int | None = Field(
        None, ge=1, le=256, description="Threads for embedding; as many as there are cores when unset."
    )
