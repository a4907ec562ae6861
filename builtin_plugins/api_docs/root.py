"""`GET /`: what this server is and where to go next, for a browser and for a program."""

from __future__ import annotations

from html import escape
from urllib.parse import urljoin

from aiohttp import hdrs, web
from pydantic import BaseModel, Field

from kernel.sdk import PLATFORM_VERSION, PUBLIC, Answer, Context, RouteTable

from .hookspecs import find_client_address, find_start_page

routes = RouteTable("Operations")

_CSP = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
_ABOUT = "Ask your own documents and get answers with their sources; extend it with plugins."
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Platform</title>
<style>
body {{ font: 1rem/1.6 system-ui, sans-serif; max-width: 36rem; margin: 4rem auto; padding: 0 1rem; }}
:root {{ color-scheme: light dark; }}
</style>
</head>
<body>
<h1>Platform {version}</h1>
<p>{about}</p>
<p>This is the address of the API.</p>
<ul>
{links}
</ul>
</body>
</html>
"""


class Root(BaseModel):
    """What this server is, and where to go from here."""

    service: str
    version: str
    about: str
    docs: str = Field(description="API documentation in which requests can be tried.")
    redoc: str = Field(description="API reference for reading.")
    openapi: str = Field(description="The OpenAPI document.")
    health: str
    status: str = Field(description="The state of each service.")
    client: str | None = Field(
        None, description="The web client, if one is configured or served by this process."
    )


@routes.get("/", access=PUBLIC, returns=Root, also_media_types=("text/html",))
async def root(ctx: Context) -> Answer | web.StreamResponse:
    """Show what this server is: a page for browsers, JSON for everyone else."""
    is_browser = "text/html" in ctx.request.headers.get(hdrs.ACCEPT, "")
    vary = {"Vary": "Accept"}
    start = await ctx.platform.hooks.ask(find_start_page, ctx=ctx)
    if is_browser and start is not None:
        start.headers.update(vary)
        return start
    info = Root(
        service="api-gateway",
        version=PLATFORM_VERSION,
        about=_ABOUT,
        docs="/docs",
        redoc="/redoc",
        openapi="/openapi.json",
        health="/health",
        status="/v1/status",
        client=await _client(ctx, start),
    )
    if not is_browser:
        return Answer(info, headers=vary)
    headers = {**vary, "Content-Security-Policy": _CSP}
    return web.Response(text=_page(info), content_type="text/html", headers=headers)


async def _client(ctx: Context, start: web.StreamResponse | None) -> str | None:
    """The client's address from the settings, otherwise from the plugins."""
    address = ctx.platform.settings.client_url or _led_to(start)
    return address or await ctx.platform.hooks.ask(find_client_address, ctx=ctx)


def _led_to(start: web.StreamResponse | None) -> str | None:
    """Where a start page redirects browsers, relative to this root."""
    location = None if start is None else start.headers.get(hdrs.LOCATION)
    return None if location is None else urljoin("/", location)


def _page(info: Root) -> str:
    links = [
        ("API documentation: read it and try requests", info.docs),
        ("API reference", info.redoc),
        ("OpenAPI document", info.openapi),
        ("Health", info.health),
        ("State of each service", info.status),
    ]
    if info.client is not None:
        links.insert(0, ("Client", info.client))
    items = (f'<li><a href="{escape(address)}">{escape(title)}</a></li>' for title, address in links)
    return _PAGE.format(version=escape(info.version), about=escape(info.about), links="\n".join(items))
