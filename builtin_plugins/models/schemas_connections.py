"""Bodies and answers about connected model servers and default models."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, Field, SecretStr, StringConstraints, field_validator
from yarl import URL

from builtin_plugins.models.addresses import OLLAMA_PORT, Kind, server_address
from kernel.sdk import Body, example

_KEY: Final = re.compile(r"[!-~]+")


def _address(value: str) -> str:
    address = server_address(value.strip(), OLLAMA_PORT)
    parts = urlsplit(address)
    if parts.username or parts.password:
        raise ValueError("must not contain a user or password; send the key in 'key'")
    if any(character in value.strip() for character in "?#*% \t\n") or not (parts.hostname or "").strip("."):
        raise ValueError("must be a plain address, such as http://127.0.0.1:11434")
    try:
        _ = URL(address).host
    except ValueError:
        raise ValueError("names a host that can't be: check how it is spelled") from None
    return address


def _key(value: SecretStr) -> SecretStr:
    key = value.get_secret_value().strip()
    if not _KEY.fullmatch(key):
        raise ValueError("must have visible ASCII characters only, and no spaces: check how it was copied")
    return SecretStr(key)


Address = Annotated[str, Field(max_length=400), AfterValidator(_address)]
ModelId = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class ServerAddress(Body):
    """A model server to test."""

    model_config = example(url="http://127.0.0.1:11434")

    url: Address = Field(
        description="Address of the server, with or without its `/v1`; a bare host gets Ollama's port."
    )
    key: Annotated[SecretStr, Field(max_length=4_000), AfterValidator(_key)] | None = Field(
        None,
        description="API key. It is stored encrypted and never returned. If the field is missing, a "
        "connection keeps its key as long as scheme, host and port stay the same; null removes it.",
    )
    kind: Kind | None = Field(None, description="Protocol of the server; found out if null.")


class ServerCheck(ServerAddress):
    """A model server to test, and one of its models."""

    model: ModelId | None = Field(
        None, description="Model that the server must have; with a key, it is asked for a word."
    )


class ConnectionWanted(ServerAddress):
    """A model server to connect; it is tested before it is saved."""

    model_config = example(url="http://127.0.0.1:11434", default_model="llama3.2")

    default_model: ModelId | None = Field(
        None,
        description="Model of this server that answers from now on. If null and none was chosen so far: an "
        "Ollama server's first that writes texts, or another server's only one.",
    )

    @field_validator("default_model")
    @classmethod
    def _trimmed(cls, value: str | None) -> str | None:
        return value.strip() or None if value else None


class ServerTestOut(BaseModel):
    """What the test of a server showed."""

    url: str
    kind: Kind
    models: list[str] = Field(description="Names of its models, in the server's order.")
    chat_models: list[str] = Field(description="Those that write texts, as far as their names tell.")


class NearbyServerOut(ServerTestOut):
    """A model server that was found."""

    connection: str | None = Field(description="Name of the connection or setting that uses this address.")


class NearbyServersOut(BaseModel):
    """Model servers at the usual addresses."""

    items: list[NearbyServerOut]


class ConnectionOut(BaseModel):
    """A model server that the platform uses, or would use."""

    name: str
    kind: Kind
    url: str
    origin: Literal["settings", "saved"] = Field(
        description="Whether an operator's settings name it, or an administrator connected it."
    )
    has_key: bool
    is_used: bool = Field(
        description="False for one that gives way to a server of the settings with the same name, or to "
        "PLATFORM_MODELS_CONNECTABLE."
    )
    can_pull: bool = Field(description="Whether models can be pulled to it.")
    changed_at: datetime | None


class ConnectionsOut(BaseModel):
    """The model servers, in the order in which they are asked."""

    items: list[ConnectionOut]
    connectable: Literal["everywhere", "public", "none"] = Field(
        description="Which addresses may be connected here."
    )


class DefaultModelsWanted(Body):
    """The default models; what is null is left to the settings."""

    model_config = example(answers="ollama/llama3.2", helpers=None)

    answers: Annotated[str, Field(min_length=1, max_length=255)] | None = Field(
        description="Model that answers where nothing else names one: `server/model`, or a model's name."
    )
    helpers: Annotated[str, Field(min_length=1, max_length=255)] | None = Field(
        description="Model for plans, checks, summaries, entities and made-up questions; null for the one "
        "that answers."
    )


class DefaultModelsOut(BaseModel):
    """The default models."""

    answers: str | None
    helpers: str | None
    answers_setting: str | None = Field(
        description="Model that OLLAMA_LLM_MODEL names; it wins over `answers`, which can't be changed then."
    )


class ModelChoice(BaseModel):
    """A model that may be named for a question."""

    model: str = Field(description="What to send as `llm_model`: `server/model`.")
    name: str
    runtime: str


class ModelChoicesOut(BaseModel):
    """The models that the caller may use for answers."""

    items: list[ModelChoice]
    default: str | None = Field(
        description="The one that answers if none is named; null if answers are quotations then."
    )
