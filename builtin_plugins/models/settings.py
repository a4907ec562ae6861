"""Settings of the models plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from builtin_plugins.models.addresses import OLLAMA_PORT, NamedRuntime, named_runtimes, server_address
from builtin_plugins.models.local.files import named_files
from kernel.sdk import ExistingFolder, Settings, env, split_list


class ModelsSettings(Settings):
    """Where model runtimes are. Without one, answers are extractive and embeddings local."""

    env_prefix: ClassVar[str] = "PLATFORM_MODELS_"

    ollama_url: str | None = Field(
        None,
        validation_alias=env("OLLAMA_BASE_URL", "OLLAMA_HOST"),
        description="Address of an Ollama server, such as http://127.0.0.1:11434.",
    )
    openai_url: str | None = Field(
        None,
        validation_alias=env("OPENAI_BASE_URL"),
        description="Address of an OpenAI-compatible server.",
    )
    openai_key: SecretStr | None = Field(
        None, validation_alias=env("OPENAI_API_KEY"), description="API key for the OpenAI-compatible server."
    )
    runtimes: str = Field(
        "",
        description="Further model servers, in the order in which they are asked, before those above: "
        "`name=ollama+http://host:11434` or `name=openai+https://host`, separated by commas.",
    )
    runtime_keys: SecretStr | None = Field(
        None, description="API keys of these servers: `name=key`, separated by commas."
    )
    llm_model: str = Field(
        "llama3.2",
        validation_alias=env("OLLAMA_LLM_MODEL"),
        description="Model that generates answers by default.",
    )
    connectable: Literal["everywhere", "public", "none"] = Field(
        "everywhere",
        description="Where administrators may connect model servers from the web client, the API and "
        "`platformctl models`: at private addresses, too, at public ones only (besides what "
        "PLATFORM_OUTGOING_ALLOWED names), or nowhere, so that only these settings name servers.",
    )
    nearby: str = Field(
        "http://127.0.0.1:11434,http://host.docker.internal:11434",
        description="Addresses at which the web client looks for an Ollama server to connect, separated by "
        "commas.",
    )
    test_seconds: float = Field(
        30, gt=0, le=300, description="Time limit in seconds for each step of the test of a model server."
    )
    media_addresses: bool = Field(
        False,
        description="Whether chats may name pictures, sound and video by address, which the model server "
        "then fetches; set it only if that server is outside your network, as it would fetch from there for "
        "anybody.",
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

    max_concurrent_pulls: int = Field(
        1,
        ge=1,
        le=16,
        validation_alias=env("MAX_CONCURRENT_MODEL_PULLS"),
        description="Models that are pulled at the same time; others wait.",
    )
    pull_attempts: int = Field(
        8, ge=1, description="Connections in a row that a pull may lose without progress before it fails."
    )
    pull_pause_seconds: float = Field(
        2, ge=0, description="Pause before a lost pull continues; it doubles up to a minute."
    )
    store_folder: Annotated[Path | None, ExistingFolder()] = Field(
        None,
        description="Folder in which an Ollama server on this machine keeps its models, for checking free "
        "space before a pull; `~/.ollama/models` if that exists.",
    )
    spare_disk_gb: float = Field(1, ge=0, description="Disk space in GB that a pull leaves free.")
    local_files: str = Field(
        "",
        description="GGUF files to serve besides those in `PLATFORM_HOME/models`: `/path/to.gguf` or "
        "`name=/path/to.gguf`, separated by commas.",
    )
    local_loaded: int = Field(1, ge=1, le=16, description="Local models in memory at the same time.")
    local_idle_seconds: float = Field(
        300, gt=0, description="Time in seconds after which an unused local model is unloaded."
    )
    local_threads: int | None = Field(
        None,
        ge=1,
        le=256,
        description="Threads of a local model; one less than there are processors if unset.",
    )
    local_context_tokens: int = Field(
        8192, ge=512, description="Context length of a local model, shared by its simultaneous answers."
    )
    local_parallel: int = Field(
        4, ge=1, le=64, description="Answers that a local model makes at the same time."
    )
    local_load_seconds: float = Field(
        120, gt=0, description="Time limit in seconds for loading a local model."
    )
    local_spare_mb: int = Field(
        512, ge=0, description="Memory in MB that stays free; below it, unused local models are unloaded."
    )

    @field_validator("ollama_url")
    @classmethod
    def _ollama_address(cls, value: str | None) -> str | None:
        return server_address(value, OLLAMA_PORT) if value else None

    @field_validator("openai_url")
    @classmethod
    def _openai_address(cls, value: str | None) -> str | None:
        return server_address(value) if value else None

    @field_validator("nearby")
    @classmethod
    def _nearby_addresses(cls, value: str) -> str:
        return ",".join(server_address(address, OLLAMA_PORT) for address in split_list(value))

    @field_validator("runtimes")
    @classmethod
    def _runtimes(cls, value: str) -> str:
        named_runtimes(value, None)
        return value

    @field_validator("local_files")
    @classmethod
    def _local_files(cls, value: str) -> str:
        named_files(value)
        return value

    @model_validator(mode="after")
    def _keys(self) -> ModelsSettings:
        self.named_runtimes()
        return self

    @property
    def answers_model(self) -> str | None:
        """The model that an operator chose for answers; None if that is left to administrators."""
        return self.llm_model if "llm_model" in self.model_fields_set else None

    def named_runtimes(self) -> list[NamedRuntime]:
        """All configured servers, in order, with their keys."""
        runtimes = named_runtimes(self.runtimes, self.runtime_keys)
        if self.ollama_url:
            runtimes.append(NamedRuntime("ollama", "ollama", self.ollama_url, None))
        if self.openai_url:
            runtimes.append(NamedRuntime("openai", "openai", self.openai_url, self.openai_key))
        names = [runtime.name for runtime in runtimes]
        if len(set(names)) != len(names):
            raise ValueError("two model servers have the same name")
        return runtimes
