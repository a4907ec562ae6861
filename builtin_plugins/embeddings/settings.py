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
        "auto", description="Engine of all-MiniLM-L6-v2; auto takes OpenVINO where it runs."
    )
    precision: Literal["auto", "fp32", "bf16"] = Field(
        "auto", description="auto takes bf16 where the processor computes in it."
    )
    weights: Path | None = Field(
        None, description="Folder with the published model files; the installed package's when unset."
    )
    threads: int | None = Field(None, ge=1, le=256, description="Processor threads; all cores when unset.")
