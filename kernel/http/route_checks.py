"""Checks routes by the house rules before anything listens: each names its access, none hides another."""

from __future__ import annotations

import inspect
from collections.abc import Container, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple, get_args

from pydantic import BaseModel

from kernel.auth.permissions import Permission
from kernel.auth.principals import TokenScope
from kernel.errors import PlatformError
from kernel.gateway.services import Service
from kernel.http.router import PathTemplate, template_of
from kernel.http.routes import Access, Rate, RawBody, Route, RouteTable, Upload
from kernel.plugins.places import Flaw

_BY_KEYWORD = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class _Claim(NamedTuple):
    """A declared route, which loses requests to a path that meets its own and has at least this depth."""

    owner: str
    method: str
    path: PathTemplate
    depth: int
    service: str


class RouteChecks:
    """Remembers the owner of each route, and says what is wrong with a new one.

    Routes of `trusted` owners, the platform's own, are added without checking whether they hide others.
    """

    def __init__(
        self,
        permissions: Mapping[str, Permission],
        services: Mapping[str, Service],
        trusted: Container[str],
    ) -> None:
        self._permissions = permissions
        self._services = services
        self._trusted = trusted
        self._owners: dict[tuple[str, str, str], str] = {}
        self._claims: dict[str, list[_Claim]] = {}

    def problem(self, owner: str, tables: Iterable[RouteTable], service: str = "") -> Flaw | None:
        """The first problem of these routes; None if there is none, and then the owner has them.

        `service` names the service at whose root the paths start; without it, they are public paths.
        """
        offered = [(table.service or service, route) for table in tables for route in table.routes]
        own: dict[tuple[str, str, str], str] = {}
        for root, route in offered:
            why = problem_of(route, self._permissions)
            if why is None:
                key = (root, route.method, template_of(route.path).shape)
                why = _conflict(self._owners.get(key) or own.get(key)) or self._hiding(owner, root, route)
                own[key] = owner
            if why is not None:
                return Flaw(f"{route.method} {route.path} {why}", route.handler)
        self._owners.update(own)
        for root, route in offered:
            self._claim(owner, root, route)
        return None

    def _hiding(self, owner: str, root: str, route: Route) -> str | None:
        """What is wrong with a route that would serve requests for another owner's."""
        path = template_of(route.path)
        claims = () if owner in self._trusted else self._claims.get(root, ())
        hidden = (
            claim
            for claim in claims
            if claim.method == route.method and claim.owner != owner and path.depth >= claim.depth
            if path.meets(claim.path)
        )
        claim = next(hidden, None)
        if claim is None:
            return None
        return f"would hide {claim.method} {claim.path.path} of '{claim.owner}'; choose another path"

    def mount_problem(self, owner: str, service: Service) -> str | None:
        """What is wrong with a service's prefixes beside the public routes of others."""
        if owner in self._trusted:
            return None
        for mount in service.prefixes:
            below = template_of(mount.prefix + "/{rest:path}")
            at = template_of(mount.prefix)
            for claim in (one for one in self._claims.get("", ()) if not one.service):
                hidden = (at.meets(claim.path) or below.meets(claim.path)) and at.depth >= claim.depth
                if claim.owner != owner and (mount.covers(claim.path.path) or hidden):
                    route = f"{claim.method} {claim.path.path}"
                    return f"wants {mount.prefix}, but '{claim.owner}' has {route}; choose another prefix"
        return None

    def _claim(self, owner: str, root: str, route: Route) -> None:
        """Remember a route, and its public paths if it is a service's: public routes are matched first, and
        all but the prefix may be known on another machine only.
        """
        path = template_of(route.path)
        self._claims.setdefault(root, []).append(_Claim(owner, route.method, path, path.depth + 1, root))
        service = self._services.get(root)
        for mount in service.prefixes if service else ():
            public = mount.public_path(route.path)
            if public is not None and route.method in mount.methods:
                path, prefix = template_of(public), template_of(mount.prefix)
                self._owners.setdefault(("", route.method, path.shape), owner)
                self._claims.setdefault("", []).append(_Claim(owner, route.method, path, prefix.depth, root))


def _conflict(holder: str | None) -> str | None:
    return None if holder is None else f"is taken by '{holder}'; choose another path"


def problem_of(route: Route, permissions: Mapping[str, Permission]) -> str | None:
    """What is wrong with a route by itself, to complete a sentence that begins with the route."""
    if not isinstance(route.access, Access):
        return "does not say who may use it; add access=… to its decorator"
    if route.access.kind == "permission" and route.access.permission not in permissions:
        return f"needs '{route.access.permission}', which no plugin declares; add it to register_permissions"
    if route.access.kind == "permission" and not _is_placed(route, permissions):
        return "must name the path parameter its permission applies to: permission(KEY, within=…)"
    if route.access.or_self is not None and f"{{{route.access.or_self}:int}}" not in route.path:
        return f"has or_self='{route.access.or_self}', which is not an integer parameter of its path"
    if not route.path.startswith("/"):
        return "must start with '/'"
    if route.fixed and (route.body or route.query or "{" in route.path):
        return "can't have fixed=True: it takes parameters"
    return _own_problem(route)


@lru_cache(2048)  # more than there are routes, whose answers stay: tests start platforms by the hundred
def _own_problem(route: Route) -> str | None:
    """What is wrong with it whichever plugins are loaded."""
    if not inspect.iscoroutinefunction(route.handler):
        return "must be served by an 'async def'"
    odd = _odd_option(route)
    if odd is not None:
        return odd
    try:
        _build(route)
    except Exception as error:  # noqa: BLE001 - pydantic may raise anything for a strange type
        return f"can't be served: {str(error).splitlines()[0]}"
    return _handler_problem(route)


def _odd_option(route: Route) -> str | None:
    """An option that would otherwise fail only when a client calls the route or reads any documentation."""
    strange = [error for error in route.errors if not _is_error(error)]
    if strange:
        return f"has {strange[0]!r} in errors; list classes such as NotFound, or statuses such as 404"
    if route.method not in _METHODS:
        return f"has the method '{route.method}'; it must be one of {', '.join(_METHODS)}"
    if not 200 <= route.status < 400:
        return f"has status={route.status}; it must be 200 to 399"
    if not (route.rate is None or isinstance(route.rate, Rate)):
        return f"has rate={route.rate!r}; write rate=Rate({route.rate!r})"
    if not set(route.token_scopes) <= set(get_args(TokenScope)):
        names = ", ".join(map(repr, get_args(TokenScope)))
        return f"has token_scopes={route.token_scopes!r}; it must be a list of {names}"
    return None


def _is_error(declared: object) -> bool:
    return isinstance(declared, int) or (isinstance(declared, type) and issubclass(declared, PlatformError))


def _is_placed(route: Route, permissions: Mapping[str, Permission]) -> bool:
    """Whether a key for an organization or team names its path parameter, and no other key does."""
    within = route.access.within
    if permissions[route.access.permission or ""].scope == "instance":
        return within is None
    return within is not None and f"{{{within}" in route.path


def _build(route: Route) -> None:
    """Make the parts of the route's endpoint once, to find errors."""
    template_of(route.path)
    _ = route.body_adapter, route.answer_adapter
    if not (route.query is None or (isinstance(route.query, type) and issubclass(route.query, BaseModel))):
        raise TypeError("its query must be a pydantic model")


def _handler_problem(route: Route) -> str | None:
    """What is wrong with the handler's parameters, to complete a sentence that begins with the route.

    The context is passed by position; the path's parameters, `query` and `body` by keyword.
    """
    parameters = list(inspect.signature(route.handler).parameters.values())
    name = f"its handler '{route.name}'"
    if not parameters or parameters[0].kind not in (*_BY_POSITION, inspect.Parameter.VAR_POSITIONAL):
        return f"can't be served: {name} must take the context first: async def {route.name}(ctx, …)"
    handed = _handed(route)
    rest = parameters[1:]
    missing = _not_taken(rest, handed)
    if missing is not None:
        return f"can't be served: {name} lacks the parameter '{missing}'; add it, or take it off the route"
    unfed = next((p.name for p in rest if _is_required(p) and p.name not in handed), None)
    if unfed is not None:
        return f"can't be served: {name} takes '{unfed}', which {_remedy(unfed)}"
    return None


def _handed(route: Route) -> list[str]:
    """The keywords with which the handler will be called."""
    keywords = list(template_of(route.path).kinds)
    if route.query is not None:
        keywords.append("query")
    if not (route.body is None or isinstance(route.body, Upload | RawBody)):
        keywords.append("body")
    return keywords


def _not_taken(parameters: Iterable[inspect.Parameter], handed: Iterable[str]) -> str | None:
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return None
    keywords = {parameter.name for parameter in parameters if parameter.kind in _BY_KEYWORD}
    return next((name for name in handed if name not in keywords), None)


def _is_required(parameter: inspect.Parameter) -> bool:
    is_variadic = parameter.kind in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return parameter.default is inspect.Parameter.empty and not is_variadic


def _remedy(name: str) -> str:
    if name in ("body", "query"):
        return f"its decorator doesn't declare; add {name}=<a pydantic model> to it"
    return f"its path doesn't contain; write {{{name}}} into the path, or give it a default"
