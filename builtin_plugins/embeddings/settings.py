"""Settings of the embeddings plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from builtin_plugins.embeddings.further.declared import (
    FurtherModel,
    checked_keys,
    checked_models,
    from_text,
    keys_of,
)
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
    models: Annotated[dict[str, FurtherModel], BeforeValidator(from_text), AfterValidator(checked_models)] = (
        Field(
            {},
            description="Further embedding models by name: folders in sentence-transformers' format, and "
            "endpoints with `/v1/embeddings`. JSON, or part of config.yaml; the README of the plugin lists "
            "what each may say.",
        )
    )
    keys: Annotated[SecretStr | None, AfterValidator(checked_keys)] = Field(
        None, description="API keys of these endpoints: `name=key`, separated by commas."
    )

    @model_validator(mode="after")
    def _keys_have_models(self) -> EmbeddingsSettings:
        if strangers := set(keys_of(self.keys)) - set(self.models):
            raise ValueError(f"a key is given for '{sorted(strangers)[0]}', which 'models' doesn't name")
        return self
