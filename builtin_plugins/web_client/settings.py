"""Settings of the web client."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from kernel.sdk import Settings


def _origin(text: str) -> str:
    """An address without a trailing slash; one that could end the header it is put into is refused."""
    address = text.strip().rstrip("/")
    if address and (not address.startswith(("http://", "https://")) or any(c in address for c in " ;,'\"<>")):
        raise ValueError("must be an address that starts with http:// or https://")
    return address


class WebClientSettings(Settings):
    """Where the web client is served."""

    env_prefix: ClassVar[str] = "PLATFORM_WEB_CLIENT_"

    port: int = Field(8009, ge=0, le=65535, description="Port of the web client; 0 picks a free port.")
    at_gateway: bool = Field(
        True,
        description="Also serve the web client on the gateway, at /app, and send browsers there from /. "
        "If false, / links to the client's own port or, behind a proxy, to PLATFORM_CLIENT_BASE_URL.",
    )
    api_url: Annotated[str, AfterValidator(_origin)] = Field(
        "",
        description="Address of the API as browsers reach it; when unset, the gateway's port on the host "
        "that served the page.",
    )
