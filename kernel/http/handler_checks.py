"""Checks that a handler takes the arguments that its route will pass."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

from kernel.http.router import template_of
from kernel.http.routes import RawBody, Route, Upload

_BY_KEYWORD = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def handler_problem(route: Route) -> str | None:
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
    found = list(template_of(route.path).kinds)
    if route.query is not None:
        found.append("query")
    if not (route.body is None or isinstance(route.body, Upload | RawBody)):
        found.append("body")
    return found


def _not_taken(parameters: Iterable[inspect.Parameter], handed: Iterable[str]) -> str | None:
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return None
    taken = {parameter.name for parameter in parameters if parameter.kind in _BY_KEYWORD}
    return next((name for name in handed if name not in taken), None)


def _is_required(parameter: inspect.Parameter) -> bool:
    is_variadic = parameter.kind in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return parameter.default is inspect.Parameter.empty and not is_variadic


def _remedy(name: str) -> str:
    if name in ("body", "query"):
        return f"its decorator doesn't declare; add {name}=<a pydantic model> to it"
    return f"its path doesn't contain; write {{{name}}} into the path, or give it a default"
