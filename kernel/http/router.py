"""Finds what serves a method and a path: plain paths by a table, patterns by aiohttp's dispatcher.

The table comes first, as the dispatcher, too, prefers a plain path to a pattern; it saves 2 µs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from aiohttp import hdrs, web

from kernel.errors import MethodNotAllowed, NotFound
from kernel.http.context import NO_PARAMETERS, UNMATCHED, Context, ErrorFormat

Serve = Callable[[Context], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Target:
    """What serves a path. `label` is its template, which metrics and logs call `endpoint`.

    `judges_credential`: it checks the caller's credential itself. `any_origin`: pages of any origin may read
    its responses. `error_format`: the format of its errors, if not the platform's. `is_miss`: nothing is
    served there; `serve` answers 404 or 405.
    """

    serve: Serve
    label: str
    judges_credential: bool = False
    any_origin: bool = False
    error_format: ErrorFormat | None = None
    is_miss: bool = False


class Router:
    """The paths of one application."""

    def __init__(self) -> None:
        self._whole: dict[tuple[str, str], Target] = {}
        self._targets: dict[web.AbstractRoute, Target] = {}
        self._dispatcher = web.UrlDispatcher()
        self._families: dict[str, ErrorFormat] = {}

    def add(
        self,
        method: str,
        path: str,
        serve: Serve,
        *,
        judges_credential: bool = False,
        any_origin: bool = False,
        error_format: ErrorFormat | None = None,
    ) -> None:
        """Serve a path in aiohttp's syntax; if two match a request, the one added first serves it."""
        route = self._dispatcher.add_route(method, path, _unused)
        assert route.resource is not None
        label = route.resource.canonical
        target = Target(serve, label, judges_credential, any_origin, error_format)
        self._targets[route] = target
        if error_format is not None and error_format.of_family:
            self._families[_family(path)] = error_format
        if isinstance(route.resource, web.PlainResource):
            self._whole.setdefault((method, path), target)

    async def find(self, request: web.Request) -> tuple[Target, Mapping[str, str]]:
        """What serves the request, and the path's parameters as text."""
        target = self._whole.get((request.method, request.rel_url.path_safe))
        if target is not None:
            return target, NO_PARAMETERS
        match = await self._dispatcher.resolve(request)
        if match.http_exception is not None:
            return await self._missed(request, match.http_exception), NO_PARAMETERS
        return self._targets[match.route], match

    async def _missed(self, request: web.Request, error: web.HTTPException) -> Target:
        """The target that answers 404 or 405. Pages that can read the path's responses can read its 405."""
        methods = error.allowed_methods if isinstance(error, web.HTTPMethodNotAllowed) else ()
        others = [(await self.find(request.clone(method=method)))[0] for method in methods]
        return Target(
            _miss(methods),
            UNMATCHED,
            any_origin=any(other.any_origin for other in others),
            error_format=self._families.get(_family(request.rel_url.path)),
            is_miss=True,
        )

    async def takes_any_origin(self, preflight: web.Request) -> bool:
        """Whether pages of any origin may send the request that a preflight asks about."""
        method = preflight.headers.get(hdrs.ACCESS_CONTROL_REQUEST_METHOD, "")
        target, _ = await self.find(preflight.clone(method=method))
        return target.any_origin


def _family(path: str) -> str:
    """The first two segments: `/v1/ai` of `/v1/ai/models`."""
    return "/".join(path.split("/", 3)[:3])


async def _unused(_request: web.Request) -> NoReturn:
    """Satisfies aiohttp, which wants a handler for each route; the route's target serves instead."""
    raise AssertionError("a route is served by its target, never by aiohttp's dispatcher")


def not_allowed(methods: Iterable[str]) -> MethodNotAllowed:
    """The error for a path that serves only other methods."""
    return MethodNotAllowed(headers={"Allow": ", ".join(sorted(methods))})


def _miss(methods: Collection[str]) -> Serve:
    async def miss(_ctx: Context) -> NoReturn:
        raise not_allowed(methods) if methods else NotFound()

    return miss
