"""Settings of the MCP server."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from kernel.sdk import Settings


class McpServerSettings(Settings):
    """How programs reach the platform over the Model Context Protocol."""

    env_prefix: ClassVar[str] = "PLATFORM_MCP_"

    public_url: str = Field(
        "",
        description="Address of this server as clients write it, such as https://platform.example.org; set "
        "it where a proxy ends TLS, so that the protected-resource metadata names it.",
    )
    allowed_origins: str = Field(
        "",
        description="Comma-separated origins of web pages that may call /mcp, besides the web client's and "
        "those of this machine; '*' allows any.",
    )
    authorization_servers: str = Field(
        "",
        description="Comma-separated issuers of OAuth tokens that a plugin of yours accepts; named in the "
        "protected-resource metadata (RFC 9728).",
    )
