"""`/openapi.json`, `/docs`, `/redoc` and their assets, served from the package (decisions.md)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from aiohttp import web

from kernel.http.docs import DOCS_CSP, STATIC_DIR, redoc_page, swagger_page
from kernel.http.endpoint import Endpoint
from kernel.http.openapi import build_document

if TYPE_CHECKING:
    from kernel.platform import Platform

_STATIC = "/static/docs"


def add(
    app: web.Application, platform: Platform, endpoints: list[Endpoint], *, title: str, service: str
) -> None:
    """Add the documentation routes of one application."""
    document = _Lazy(platform, endpoints, title)

    async def openapi(_request: web.Request) -> web.Response:
        return web.Response(body=document.body(), content_type="application/json")

    async def docs(_request: web.Request) -> web.Response:
        return _page(swagger_page("/openapi.json", _STATIC, title))

    async def redoc(_request: web.Request) -> web.Response:
        return _page(redoc_page("/openapi.json", _STATIC, title))

    for path, handler in (("/openapi.json", openapi), ("/docs", docs), ("/redoc", redoc)):
        app.router.add_get(path, handler)
    app.router.add_static(_STATIC, STATIC_DIR)


class _Lazy:
    """The document, built when somebody asks for it first."""

    def __init__(self, platform: Platform, endpoints: list[Endpoint], title: str) -> None:
        self._platform = platform
        self._endpoints = endpoints
        self._title = title
        self._body: bytes | None = None

    def body(self) -> bytes:
        if self._body is None:
            self._body = json.dumps(build_document(self._endpoints, self._title), ensure_ascii=False).encode()
        return self._body


def _page(html: str) -> web.Response:
    return web.Response(text=html, content_type="text/html", headers={"Content-Security-Policy": DOCS_CSP})
