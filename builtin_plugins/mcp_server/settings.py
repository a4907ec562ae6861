"""Settings of the MCP server."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from kernel.sdk import Settings, base_address, split_list
from kernel.sdk.operations import origins


def _issuers(value: str) -> str:
    for issuer in split_list(value):
        base_address(issuer)
    return value


class McpServerSettings(Settings):
    """How programs reach the platform over the Model Context Protocol."""

    env_prefix: ClassVar[str] = "PLATFORM_MCP_"

    public_url: Annotated[str, AfterValidator(base_address)] = Field(
        "",
        description="Address of this server as clients write it, such as https://platform.example.org; set "
        "it where a proxy ends TLS, so that the protected-resource metadata names it.",
    )
    allowed_origins: Annotated[str, AfterValidator(origins)] = Field(
        "",
        description="Comma-separated origins of web pages that may call /mcp, besides the web client's and "
        "those of this machine; '*' allows any.",
    )
    authorization_servers: Annotated[str, AfterValidator(_issuers)] = Field(
        "",
        description="Comma-separated issuers of OAuth tokens that a plugin of yours accepts; named in the "
        "protected-resource metadata (RFC 9728).",
    )
