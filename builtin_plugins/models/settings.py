"""Settings of the models plugin."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, SecretStr, field_validator

from builtin_plugins.models.addresses import OLLAMA_PORT, server_address
from kernel.sdk import Settings, env


class ModelsSettings(Settings):
    """Where the model runtime is. Without one, answers are extractive and embeddings local."""

    env_prefix: ClassVar[str] = "PLATFORM_MODELS_"

    ollama_url: str | None = Field(
        None,
        validation_alias=env("OLLAMA_BASE_URL", "OLLAMA_HOST"),
        description="Address of an Ollama server, such as http://127.0.0.1:11434.",
    )
    openai_url: str | None = Field(
        None,
        validation_alias=env("OPENAI_BASE_URL"),
        description="Address of an OpenAI-compatible server, used when no Ollama address is set.",
    )
    openai_key: SecretStr | None = Field(
        None, validation_alias=env("OPENAI_API_KEY"), description="API key for the OpenAI-compatible server."
    )
    llm_model: str = Field(
        "llama3.2",
        validation_alias=env("OLLAMA_LLM_MODEL"),
        description="Model that generates answers by default.",
    )
    context_tokens: int | None = Field(
        None, ge=512, description="Context length to request from Ollama; Ollama's own default when unset."
    )
    connect_seconds: float = Field(
        5, gt=0, description="Time limit in seconds for connecting to the model runtime."
    )
    silence_seconds: float = Field(
        120,
        gt=0,
        description="Longest pause in seconds while an answer is generated, including before the first word.",
    )
    total_seconds: float = Field(300, gt=0, description="Time limit in seconds for one whole answer.")

    @field_validator("ollama_url")
    @classmethod
    def _ollama_address(cls, value: str | None) -> str | None:
        return server_address(value, OLLAMA_PORT) if value else None

    @field_validator("openai_url")
    @classmethod
    def _openai_address(cls, value: str | None) -> str | None:
        return server_address(value) if value else None
