"""The contents of `PLATFORM_EMBEDDINGS_MODELS`."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from builtin_plugins.embeddings.engines.base import DeclaredWrongly, Vectors
from builtin_plugins.inference import api as inference

RESERVED = frozenset({"all-minilm", "all-minilm-l6-v2", "multilingual-e5-small"})
"""Names of the models that come with the plugin."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class FurtherModel(BaseModel):
    """A model in a folder, or one that an endpoint serves.

    `dimension` is checked against the vectors. `max_tokens` limits what a model in a folder reads of a text,
    `max_chars` what an endpoint is sent of one. Prefixes default to the folder's own prompts, else none.
    `unrelated`, `meaning`, `languages` and `elsewhere` are those of `Embedded`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    folder: Path | None = None
    url: str | None = Field(None, pattern=r"^https?://[^\s@]+$", max_length=2000)
    model: str | None = Field(None, min_length=1, max_length=200)
    dimension: int = Field(ge=1, le=16_384)
    passage_prefix: str | None = Field(None, max_length=500)
    query_prefix: str | None = Field(None, max_length=500)
    max_tokens: int | None = Field(None, ge=8, le=1_000_000)
    max_chars: int = Field(6_000, ge=100, le=1_000_000)
    unrelated: float = Field(0.0, ge=-1.0, lt=1.0)
    meaning: float = Field(0.7, ge=0.0, le=1.0)
    languages: frozenset[Annotated[str, Field(pattern="^[a-z]{2,3}$")]] | None = None
    elsewhere: float = Field(0.2, ge=0.0, le=1.0)
    batch: int = Field(32, ge=1, le=2_048)
    seconds: float = Field(60, gt=0, le=3_600)

    @model_validator(mode="after")
    def _one_place(self) -> FurtherModel:
        if (self.folder is None) == (self.url is None):
            raise ValueError("name either 'folder' or 'url'")
        fields = self.model_fields_set
        if self.url is None and fields & {"model", "max_chars", "batch", "seconds"}:
            raise ValueError("'model', 'max_chars', 'batch' and 'seconds' need 'url'")
        if self.folder is None and "max_tokens" in fields:
            raise ValueError("'max_tokens' needs 'folder'; for an endpoint set 'max_chars'")
        return self

    def prefix(self, purpose: inference.Purpose) -> str:
        """The prefix of a text, as far as configured."""
        return (self.passage_prefix if purpose == "passage" else self.query_prefix) or ""


def checked_models(models: dict[str, FurtherModel]) -> dict[str, FurtherModel]:
    """The models by name, after checking that no name is taken. Raises ValueError."""
    for name in models:
        if not _NAME.fullmatch(name):
            raise ValueError(f"'{name}' must be 1 to 64 lower-case letters, digits, '.', '_' or '-'")
        if name in RESERVED:
            raise ValueError(f"'{name}' is a model that comes with the platform: choose another name")
    return models


def from_text(value: Any) -> Any:
    """Parses JSON from the environment, or the value from config.yaml."""
    return json.loads(value) if isinstance(value, str) else value


def checked_keys(keys: SecretStr | None) -> SecretStr | None:
    """`keys`, after checking their format. Raises ValueError."""
    keys_of(keys)
    return keys


def keys_of(keys: SecretStr | None) -> dict[str, str]:
    """API keys by model name, from `name=key, …`. Raises ValueError."""
    entries = [entry.strip() for entry in keys.get_secret_value().split(",")] if keys else []
    pairs = [entry.partition("=") for entry in entries if entry]
    if any(not name or not equals or not key for name, equals, key in pairs):
        raise ValueError("each entry must have the form name=key")
    return {name: key for name, _, key in pairs}


def check_dimension(name: str, declared: int, vectors: Vectors) -> None:
    """Raise DeclaredWrongly if a model's vectors don't have the configured length."""
    if vectors.shape[1] != declared:
        raise DeclaredWrongly(
            f"the model '{name}' gives vectors of {vectors.shape[1]} numbers, but its 'dimension' in "
            f"PLATFORM_EMBEDDINGS_MODELS is {declared}: correct one of them"
        )


def digest(*parts: object) -> str:
    """Twelve hexadecimal digits that identify a way of making vectors."""
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:12]
