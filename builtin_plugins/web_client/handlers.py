"""The client's page, the same at all its addresses, and the files that it loads."""

from __future__ import annotations

import re
from html import escape
from typing import Final

from aiohttp import hdrs, web

from kernel.sdk import PUBLIC, Context, NotFound, RouteTable

from .files import FILES, INDEX
from .settings import WebClientSettings

files = RouteTable("Web client")
at_gateway = RouteTable("Web client")
at_root = RouteTable("Web client")

# Below /static/, which is exempt from the gateway's general limit: a view may load a dozen files at once.
_FILES: Final = "/static/client"
_BASE: Final = "/app"
_DEEPEST: Final = 12  # segments of a view's address; deeper ones don't exist, and the page must stay small
_FOR_EVER: Final = "public, max-age=31536000, immutable"
SERVICE: Final = "web-client"
_PROXIED: Final = (
    *("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Via"),
)
_HOST: Final = re.compile(r"([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:\d{1,5})?")
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "font-src 'self' data: blob:; media-src blob:; worker-src 'self'; connect-src 'self'{api}; "
    "frame-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

# In a document's preview nothing runs, and nothing is loaded.
_FRAME: Final = "preview.html"
_FRAME_POLICY: Final = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)


@files.get(
    _FILES + "/{digest}/{name:path}", access=PUBLIC, returns=str, media_type="text/javascript", hidden=True
)
async def file(ctx: Context, digest: str, name: str) -> web.Response:
    """Get one of the client's files. Its address changes when any file does, so browsers keep it."""
    assets = ctx.resource(FILES)
    asset = assets.find(name)
    if asset is None or digest != assets.digest:
        raise NotFound()
    headers = {
        hdrs.CACHE_CONTROL: _FOR_EVER,
        hdrs.CONTENT_TYPE: f"{asset.media_type}; charset=utf-8" if asset.is_text else asset.media_type,
        "X-Content-Type-Options": "nosniff",
        hdrs.VARY: hdrs.ACCEPT_ENCODING,
    }
    if name == _FRAME:
        headers |= {"Content-Security-Policy": _FRAME_POLICY, "X-Frame-Options": "SAMEORIGIN"}
    if asset.is_text and "gzip" in ctx.request.headers.get(hdrs.ACCEPT_ENCODING, ""):
        headers[hdrs.CONTENT_ENCODING] = "gzip"
        return web.Response(body=await assets.compressed(name), headers=headers)
    return web.Response(body=asset.content, headers=headers)


@at_gateway.get(_BASE, access=PUBLIC, returns=str, media_type="text/html", hidden=True)
async def start(ctx: Context) -> web.Response:
    """Show the web client."""
    return _at_gateway(ctx)


@at_gateway.get(_BASE + "/{view:path}", access=PUBLIC, returns=str, media_type="text/html", hidden=True)
async def view(ctx: Context, view: str) -> web.Response:
    """Show a view of the web client; the page reads the address itself."""
    return _at_gateway(ctx)


@at_root.get("/", access=PUBLIC, returns=str, media_type="text/html", hidden=True)
async def root_start(ctx: Context) -> web.Response:
    """Show the web client on its own port."""
    return _page(ctx, base="", api=_api_address(ctx))


@at_root.get("/{view:path}", access=PUBLIC, returns=str, media_type="text/html", hidden=True)
async def root_view(ctx: Context, view: str) -> web.Response:
    """Show a view of the web client on its own port."""
    return _page(ctx, base="", api=_api_address(ctx))


def start_page(ctx: Context) -> web.Response | None:
    """Redirect a browser from the gateway's root to the client, if it is served."""
    if not ctx.settings_of(WebClientSettings).at_gateway:
        return None
    headers = {hdrs.LOCATION: _BASE.lstrip("/"), hdrs.CACHE_CONTROL: "no-cache"}
    return web.Response(status=302, headers=headers)


def own_address(ctx: Context) -> str | None:
    """The client on its own port, at the host that the browser requested.

    None through a proxy: only the operator knows what leads to the port there (`PLATFORM_CLIENT_BASE_URL`).
    """
    port = ctx.platform.own_port_of(SERVICE)
    host = _HOST.fullmatch(ctx.request.headers.get(hdrs.HOST, ""))
    if port is None or host is None or any(name in ctx.request.headers for name in _PROXIED):
        return None
    return f"{ctx.request.scheme}://{host[1]}:{port}"


def _at_gateway(ctx: Context) -> web.Response:
    settings = ctx.settings_of(WebClientSettings)
    if not settings.at_gateway:
        raise NotFound()
    return _page(ctx, base=_BASE, api=settings.api_url)


def _api_address(ctx: Context) -> str:
    """The gateway as the browser reaches it: at the requested host, on its own port."""
    own = ctx.settings_of(WebClientSettings).api_url
    if own:
        return own
    host = _HOST.fullmatch(ctx.request.headers.get(hdrs.HOST, ""))
    name = host[1] if host else ctx.platform.settings.host
    return f"{ctx.request.scheme}://{name}:{ctx.platform.settings.port}"


def _way_up(path: str) -> str:
    """The relative path from the page at `path` to the root, as a proxy may serve the platform anywhere."""
    depth = path.count("/") - 1
    return "/" if depth > _DEEPEST else "../" * depth or "./"


def _page(ctx: Context, *, base: str, api: str) -> web.Response:
    assets = ctx.resource(FILES)
    index = assets.find(INDEX)
    assert index is not None
    root = _way_up(ctx.request.rel_url.raw_path)
    text = index.content.decode().replace("{assets}", f"{root}{_FILES.lstrip('/')}/{assets.digest}")
    text = text.replace("{root}", root)
    text = text.replace("{base}", escape(base)).replace("{api}", escape(api))
    text = text.replace("{languages}", escape(" ".join(assets.languages())))
    headers = {
        hdrs.CACHE_CONTROL: "no-cache",
        "Content-Security-Policy": _POLICY.format(api=f" {api}" if api else ""),
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=(self)",
    }
    return web.Response(text=text, content_type="text/html", headers=headers)
