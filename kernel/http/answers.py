"""What a handler returns, as the JSON of the type that its route declares.

A model of that type is taken as it is (measured: 0.1 µs, and 7 µs for a list of 500). Anything else is read
as the type: a dictionary or a row gets the model's defaults and loses what the model doesn't declare, which
may be secret.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from pydantic import ValidationError

from kernel.http.routes import Route


class UnfitAnswer(TypeError):
    """What a handler returned is not what its route declares."""

    def __init__(self, route: Route, answer: Any, error: ValidationError) -> None:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        wrong = f"{where}: {first['msg']}" if where else first["msg"]
        given = f"{route.method} {route.path} returned a {type(answer).__name__}"
        super().__init__(f"{given} that doesn't fit its 'returns': {wrong}")


def renderer(route: Route, *, strict: bool) -> Callable[[Any], bytes]:
    """The function from a handler's result to JSON. It raises UnfitAnswer if the result doesn't fit.

    With `strict`, what a model contains must fit, too, including the schema that clients read.
    """
    if route.returns is None:
        return route.answer_adapter.serializer.to_json
    adapter = route.answer_adapter
    read = partial(adapter.validator.validate_python, from_attributes=True, by_alias=True, by_name=True)
    # The serializer itself: for a small result, the adapter's method doubles the cost.
    to_json = partial(adapter.serializer.to_json, by_alias=True)
    write = _checked(route, to_json) if strict else to_json

    def render(answer: Any) -> bytes:
        try:
            fitting = read(answer)
        except ValidationError as error:
            raise UnfitAnswer(route, answer, error) from None
        return write(fitting)

    return render


def _checked(route: Route, to_json: Callable[..., bytes]) -> Callable[[Any], bytes]:
    """The same, checked against the schema that clients read."""

    def checked(answer: Any) -> bytes:
        body = to_json(answer, warnings="error")
        route.answer_check.validate(json.loads(body))
        return body

    return checked
