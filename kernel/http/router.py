"""The routes of one application in aiohttp's router, their paths, and what the platform knows of each."""

from __future__ import annotations

import re
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import takewhile
from typing import Any

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from kernel.errors import NotFound, Unprocessable
from kernel.http.context import CONTEXT, UNMATCHED, Context, ErrorFormat
from kernel.http.validation import parse_int

_PARAMETER = re.compile(r"\{([A-Za-z_]\w*)(?::(\w+))?\}", re.ASCII)

# What a parameter must look like for its route to do more than refuse the request.
_TEXTS = {"": "[^/]+", "uuid": "[0-9A-Fa-f-]{32,36}", "int": "-?[0-9]+"}
_REST = re.compile(r"\{\w+:path\}")

_SCHEMAS: dict[str | None, dict[str, Any]] = {
    None: {"type": "string"},
    "uuid": {"type": "string", "format": "uuid"},
    "int": {"type": "integer"},
    "path": {"type": "string"},
}


def parse_uuid(text: str) -> str:
    """The UUID in canonical form. Raises NotFound for a malformed one (wire-facts 1.1)."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise NotFound() from None


def _text(value: str) -> str:
    if "\x00" in value:
        raise NotFound()
    return value


_PARSERS: dict[str | None, Callable[[str], Any]] = {
    None: _text,
    "uuid": parse_uuid,
    "int": parse_int,
    "path": _text,
}


@lru_cache(2048)  # more than routes have paths
def template_of(path: str) -> PathTemplate:
    """The path's template. A start asks for each about eight times, to check routes and to serve them."""
    return PathTemplate(path)


class PathTemplate:
    """A path with typed parameters; it never changes."""

    def __init__(self, path: str) -> None:
        self.path = path
        parameters = _PARAMETER.findall(path)
        kinds = {name: kind or None for name, kind in parameters}
        _check(path, distinct=len(kinds) == len(parameters))
        unknown = {kind for kind in kinds.values() if kind not in _SCHEMAS}
        if unknown:
            raise ValueError(f"path '{path}': unknown parameter type {sorted(map(str, unknown))}")
        self.kinds = kinds
        self._parsers = [(name, _PARSERS[kind]) for name, kind in kinds.items()]

    @cached_property
    def aiohttp(self) -> str:
        """The path in aiohttp's router syntax."""
        return _PARAMETER.sub(lambda m: f"{{{m[1]}:.*}}" if m[2] == "path" else f"{{{m[1]}}}", self.path)

    @cached_property
    def openapi(self) -> str:
        """The path in OpenAPI's syntax; also the `endpoint` label of metrics."""
        return _PARAMETER.sub(lambda m: f"{{{m[1]}}}", self.path)

    @cached_property
    def shape(self) -> str:
        """The path with uniform parameters: paths with the same shape match the same requests."""
        return _PARAMETER.sub("{}", _REST.sub("{*}", self.path))

    @cached_property
    def depth(self) -> int:
        """How many segments come before the first parameter. If two routes match a request, the one with more
        serves it, else the one added first.
        """
        return sum(1 for _ in takewhile(lambda segment: "{" not in segment, self.path.split("/")))

    def meets(self, other: PathTemplate) -> bool:
        """Whether both may match the same request."""
        own, its = self.path.split("/"), other.path.split("/")
        if not (_REST.search(self.path) or _REST.search(other.path)):
            return len(own) == len(its) and all(map(_meet, own, its))
        return _begin_alike(own, its) and _begin_alike(own[::-1], its[::-1])

    def schema(self, name: str) -> dict[str, Any]:
        """The JSON Schema of one parameter."""
        return dict(_SCHEMAS[self.kinds[name]])

    def values(self, match: Mapping[str, str]) -> dict[str, Any]:
        """The typed parameters of one request. Raises NotFound or Unprocessable."""
        values = {}
        for name, parse in self._parsers:
            try:
                values[name] = parse(match[name])
            except ValueError as error:
                raise Unprocessable.field(("path", name), str(error), match[name][:40]) from None
        return values


def _check(path: str, *, distinct: bool) -> None:
    """Raise ValueError for a path that could not be served, or not as it is written."""
    fixed = _PARAMETER.sub("", path)
    if set(fixed) & set("{}"):
        raise ValueError(f"path '{path}': write parameters as {{name}} or {{name:type}}")
    if not distinct:
        raise ValueError(f"path '{path}': two parameters have the same name")
    if set(fixed) & set("?#%"):
        raise ValueError(f"path '{path}': '?', '#' and '%' can't be part of a path")


def _begin_alike(segments: Sequence[str], others: Sequence[str]) -> bool:
    """Whether some text may match the segments of both up to the first `path` parameter, which one has."""
    for own, its in zip(segments, others, strict=False):
        if _REST.search(own) or _REST.search(its):
            return True
        if not _meet(own, its):
            return False
    return False


def _meet(segment: str, other: str) -> bool:
    """Whether some text may match both segments; assumed if both have parameters."""
    if "{" in segment:
        return "{" in other or _meet(other, segment)
    return re.fullmatch(_pattern(other), segment) is not None


def _pattern(segment: str) -> str:
    """A segment as a regular expression."""
    texts = iter(_PARAMETER.split(segment))  # a fixed text, then a name, a kind and a fixed text each
    pattern = re.escape(next(texts))
    for _name, kind, text in zip(texts, texts, texts, strict=True):
        pattern += _TEXTS[kind or ""] + re.escape(text)
    return pattern


Serve = Callable[[Context], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Target:
    """What serves a path. `label` is its template, which metrics and logs call `endpoint`.

    `judges_credential`: it checks the caller's credential itself. `any_origin`: pages of any origin may read
    its responses. `error_format`: the format of its errors, if not the platform's. Without `serve`, nothing
    is served there: aiohttp answers 404 or 405.
    """

    serve: Serve | None
    label: str
    judges_credential: bool = False
    any_origin: bool = False
    error_format: ErrorFormat | None = None


class Router:
    """The paths of one application."""

    def __init__(self, router: web.UrlDispatcher) -> None:
        self._router = router
        self._targets: dict[web.AbstractRoute, Target] = {}
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
        """Serve a path in aiohttp's syntax; GET includes HEAD. If two match a request, the one added first
        serves it.
        """
        for served in ("GET", "HEAD") if method == "GET" else (method,):
            route = self._router.add_route(served, path, _handler(serve))
            assert route.resource is not None
            label = route.resource.canonical
            self._targets[route] = Target(serve, label, judges_credential, any_origin, error_format)
        if error_format is not None and error_format.of_family:
            self._families[_family(path)] = error_format

    async def resolve(self, request: web.Request) -> tuple[Target, web.UrlMappingMatchInfo]:
        """What serves the request, and its match with the path's parameters."""
        match = await self._router.resolve(request)
        return await self.target_of(match, request), match

    async def target_of(self, match: web.UrlMappingMatchInfo, request: web.Request) -> Target:
        """What serves a request with this match."""
        if match.http_exception is None:
            return self._targets[match.route]
        return await self._missed(request, match.http_exception)

    async def _missed(self, request: web.Request, error: web.HTTPException) -> Target:
        """The target of a 404 or 405. Pages that can read the path's responses can read its 405."""
        methods = error.allowed_methods if isinstance(error, web.HTTPMethodNotAllowed) else ()
        others = [(await self.resolve(request.clone(method=method)))[0] for method in methods]
        return Target(
            None,
            UNMATCHED,
            any_origin=any(other.any_origin for other in others),
            error_format=self._families.get(_family(request.rel_url.path)),
        )

    async def takes_any_origin(self, preflight: web.Request) -> bool:
        """Whether pages of any origin may send the request that a preflight asks about."""
        method = preflight.headers.get(hdrs.ACCESS_CONTROL_REQUEST_METHOD, "")
        target, _ = await self.resolve(preflight.clone(method=method))
        return target.any_origin


def _handler(serve: Serve) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        return await serve(request[CONTEXT])

    return handle


def _family(path: str) -> str:
    """The first two segments: `/v1/ai` of `/v1/ai/models`."""
    return "/".join(path.split("/", 3)[:3])
