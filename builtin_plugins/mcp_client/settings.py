"""Settings of the MCP client: the servers whose tools the platform offers."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from kernel.sdk import Settings


def _named(servers: dict[str, ServerSettings]) -> dict[str, ServerSettings]:
    for name in servers:
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,23}", name):
            raise ValueError(f"'{name}' must be 1 to 24 lower-case letters, digits or '_'")
    return servers


def _from_text(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


class ServerSettings(BaseModel):
    """One MCP server: a program that is started here, or an address."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: list[str] | None = Field(None, min_length=1, max_length=50)
    folder: str | None = None
    env: dict[str, str] = {}
    env_secrets: dict[str, str] = {}
    url: str | None = Field(None, pattern=r"^https?://[^\s@]+$", max_length=2000)
    secret: str | None = None
    credentials: Literal["operator", "account"] = "operator"
    allow: list[str] = Field(["*"], max_length=200)
    access: Literal["authenticated", "admin"] = "authenticated"
    trusted: bool = False
    seconds: float = Field(30, ge=1, le=280)
    answer_kb: int = Field(256, ge=1, le=10_240)

    @model_validator(mode="after")
    def _fits(self) -> ServerSettings:
        if (self.command is None) == (self.url is None):
            raise ValueError("name either 'command' or 'url'")
        if self.command is not None and (self.secret or self.credentials == "account"):
            raise ValueError(
                "a program takes its secrets as 'env_secrets'; 'secret' and 'credentials' need 'url'"
            )
        if self.url is not None and (self.env or self.env_secrets or self.folder):
            raise ValueError("'env', 'env_secrets' and 'folder' need 'command'")
        return self


class McpClientSettings(Settings):
    """Which servers there are."""

    env_prefix: ClassVar[str] = "PLATFORM_MCP_CLIENT_"

    servers: Annotated[dict[str, ServerSettings], BeforeValidator(_from_text), AfterValidator(_named)] = (
        Field(
            {},
            description="MCP servers whose tools are offered, by name: JSON, or part of config.yaml. The "
            "plugin's README lists the options of each.",
        )
    )
