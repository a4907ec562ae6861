"""Settings of the embeddings plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from builtin_plugins.embeddings.further.declarations import (
    RESERVED,
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
    precision: Literal["auto", "int8", "bf16", "fp32"] = Field(
        "auto",
        description="Precision; auto uses the fastest that the processor supports: int8 for "
        "multilingual-e5-small (without AMX), else bf16, else fp32.",
    )
    weights: Path | None = Field(
        None,
        description="Folder with the published files of all-MiniLM-L6-v2; those of the package when unset.",
    )
    e5_file: Path | None = Field(
        None,
        description="Packed file of multilingual-e5-small (e5-small-q4.bin); the package's own when unset.",
    )
    threads: int | None = Field(
        None, ge=1, le=256, description="Threads for embedding; as many as there are cores when unset."
    )
    batches: int | None = Field(
        None,
        ge=1,
        le=64,
        description="Batches embedded in parallel, which share the threads; when unset, 2 in a worker "
        "(faster for many passages) and 1 elsewhere (answers a question sooner).",
    )
    models: Annotated[dict[str, FurtherModel], BeforeValidator(from_text), AfterValidator(checked_models)] = (
        Field(
            {},
            description="Further embedding models by name: folders in sentence-transformers' format, and "
            "endpoints with `/v1/embeddings`. JSON, or part of config.yaml; the plugin's README lists "
            "the options of each.",
        )
    )
    keys: Annotated[SecretStr | None, AfterValidator(checked_keys)] = Field(
        None, description="API keys of these endpoints: `name=key`, separated by commas."
    )
    preload: str = Field(
        "",
        description="Models to load before a process takes its first request, separated by commas, such "
        "as multilingual-e5-small; others are loaded by the first text that needs them.",
    )

    @property
    def for_torch(self) -> Literal["bf16", "fp32"]:
        """The precision of models in torch: bf16 only if configured."""
        return "bf16" if self.precision == "bf16" else "fp32"

    @property
    def preloaded(self) -> list[str]:
        """The names in `preload`, in lower case."""
        return _names(self.preload)

    @field_validator("preload")
    @classmethod
    def _preloaded_are_here(cls, value: str, info: ValidationInfo) -> str:
        further = info.data.get("models", {})
        here = RESERVED.union(name for name, model in further.items() if model.folder is not None)
        if strangers := set(_names(value)) - here:
            raise ValueError(
                f"no model on this machine is called '{min(strangers)}'; available: {', '.join(sorted(here))}"
            )
        return value

    @model_validator(mode="after")
    def _keys_have_models(self) -> EmbeddingsSettings:
        if strangers := set(keys_of(self.keys)) - set(self.models):
            raise ValueError(f"a key is given for '{sorted(strangers)[0]}', which is not in 'models'")
        return self


def _names(value: str) -> list[str]:
    return [name for entry in value.split(",") if (name := entry.strip().lower())]
