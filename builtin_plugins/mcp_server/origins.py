"""Which web pages may call: a page in a browser must not reach a server on its reader's machine."""

from __future__ import annotations

from urllib.parse import urlsplit

from builtin_plugins.mcp_server.settings import McpServerSettings
from kernel.sdk import Context, Forbidden, split_list

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class ForeignOrigin(Forbidden):
    """A browser sent this for a page of another site."""

    code = "foreign_origin"
    default_detail = "Pages of this origin may not call this address; see PLATFORM_MCP_ALLOWED_ORIGINS"


def check_origin(ctx: Context) -> None:
    """Raise ForeignOrigin for a page that is not one of ours. Host proves nothing (DNS rebinding)."""
    origin = ctx.request.headers.get("Origin")
    if origin is None:
        return
    allowed = ctx.settings_of(McpServerSettings).allowed_origins
    own_origins = {*split_list(allowed), _origin(ctx.platform.settings.client_url)} - {""}
    if "*" in own_origins or origin in own_origins:
        return
    try:
        host = urlsplit(origin).hostname
    except ValueError:
        host = None
    if host not in _LOOPBACK:
        raise ForeignOrigin()


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""
