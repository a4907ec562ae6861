"""`/openapi.json`, `/docs`, `/redoc` and their assets, served from the package (decisions.md)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from aiohttp import web

from kernel.sdk import Context, NotFound
from kernel.sdk.http import BoundRoute, Serve

from .openapi import build_document
from .pages import DOCS_CSP, STATIC_DIR, redoc_page, swagger_page

_STATIC = "/static/docs"


def docs_routes(endpoints: Sequence[BoundRoute], title: str) -> dict[str, Serve]:
    """The handlers of an application's documentation, by path."""
    document = _Document(endpoints, title)

    async def openapi(_ctx: Context) -> web.Response:
        return web.Response(body=document.body(), content_type="application/json")

    async def docs(_ctx: Context) -> web.Response:
        return _page(swagger_page("openapi.json", _STATIC.lstrip("/"), title))

    async def redoc(_ctx: Context) -> web.Response:
        return _page(redoc_page("openapi.json", _STATIC.lstrip("/"), title))

    return {"/openapi.json": openapi, "/docs": docs, "/redoc": redoc, _STATIC + "/{name:.*}": _assets()}


def _assets() -> Serve:
    """Serves the package's files by name: client input never becomes a file path."""
    files = {
        path.relative_to(STATIC_DIR).as_posix(): path for path in STATIC_DIR.rglob("*") if path.is_file()
    }

    async def asset(ctx: Context) -> web.StreamResponse:
        name = ctx.match["name"]
        if name not in files:
            raise NotFound()
        return await ctx.show_file(files[name])

    return asset


class _Document:
    """The document as JSON, built at the first request."""

    def __init__(self, endpoints: Sequence[BoundRoute], title: str) -> None:
        self._endpoints = endpoints
        self._title = title
        self._body: bytes | None = None

    def body(self) -> bytes:
        if self._body is None:
            self._body = json.dumps(build_document(self._endpoints, self._title), ensure_ascii=False).encode()
        return self._body


def _page(html: str) -> web.Response:
    return web.Response(text=html, content_type="text/html", headers={"Content-Security-Policy": DOCS_CSP})
