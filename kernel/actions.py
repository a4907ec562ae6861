"""Actions: one declaration per thing a plugin can do for a person, a program or a model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

if TYPE_CHECKING:
    from kernel.http.context import Context

Tier = Literal["free", "community", "pro", "enterprise"]

_DROPPED = frozenset({"title", "$defs"})


@dataclass(frozen=True)
class Action:
    """An action of a plugin (wire-facts 6.5, 6.6).

    `parameters` is validated before `handler(ctx, parameters)` is called; what it returns must be JSON or a
    pydantic model. A ValueError of the handler reaches the caller as a 400 with its text. `read_only` actions
    answer ``GET /v1/plugins/{plugin}/actions/{name}`` without a token. `owner` names the plugin as clients
    see it, where it is not the declaring plugin (a manifest).
    """

    name: str
    description: str
    parameters: type[BaseModel]
    handler: Callable[[Context, Any], Awaitable[Any]]
    read_only: bool = False
    tier: Tier = "community"
    owner: str | None = None

    def parameters_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, in the plain form that models and tool servers read.

        No references, no titles, no union with null: a field that may be left out is one that is not in
        ``required``.
        """
        schema = self.parameters.model_json_schema()
        plain = _plain(schema, schema.get("$defs", {}), ())
        return {"type": "object", "properties": {}, **plain}


def _plain(node: Any, definitions: dict[str, Any], inside: tuple[str, ...]) -> Any:
    """`node` with its references written out; one that refers to itself becomes any object."""
    if isinstance(node, list):
        return [_plain(item, definitions, inside) for item in node]
    if not isinstance(node, dict):
        return node
    node = _without_null(node)
    name = str(node.get("$ref", "")).rpartition("/")[2]
    if name in inside:
        return {"type": "object"}
    if name:
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return _plain({**definitions[name], **rest}, definitions, (*inside, name))
    return _plain_members(node, definitions, inside)


def _plain_members(
    node: dict[str, Any], definitions: dict[str, Any], inside: tuple[str, ...]
) -> dict[str, Any]:
    found = {key: _plain(value, definitions, inside) for key, value in node.items() if key not in _DROPPED}
    if isinstance(node.get("properties"), dict):
        fields = node["properties"].items()
        found["properties"] = {name: _plain(value, definitions, inside) for name, value in fields}
    return found


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    """A choice between something and null is that something, left out when it is null."""
    kinds = [kind for kind in node.get("anyOf", ()) if kind != {"type": "null"}]
    rest = {key: value for key, value in node.items() if key != "anyOf"}
    if rest.get("default", ...) is None:
        del rest["default"]
    if len(kinds) == 1:
        return {**kinds[0], **rest}
    return {**rest, "anyOf": kinds} if kinds else rest
