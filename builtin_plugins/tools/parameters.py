"""The schema of an action's arguments, in the simple form that models and tool servers understand."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

_DROPPED = frozenset({"title", "$defs"})


def parameters_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema of the arguments.

    No references, no titles, no unions with null: an optional field is one that is not in ``required``.
    """
    schema = model.model_json_schema()
    plain = _plain(schema, schema.get("$defs", {}), ())
    return {"type": "object", "properties": {}, **plain}


def _plain(node: Any, definitions: dict[str, Any], inside: tuple[str, ...]) -> Any:
    """`node` with its references expanded; a recursive one becomes any object."""
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
    members = {key: _plain(value, definitions, inside) for key, value in node.items() if key not in _DROPPED}
    if isinstance(node.get("properties"), dict):
        fields = node["properties"].items()
        members["properties"] = {name: _plain(value, definitions, inside) for name, value in fields}
    return members


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    """A union of something and null becomes that something alone: null means to omit it."""
    kinds = [kind for kind in node.get("anyOf", ()) if kind != {"type": "null"}]
    rest = {key: value for key, value in node.items() if key != "anyOf"}
    if rest.get("default", ...) is None:
        del rest["default"]
    if len(kinds) == 1:
        return {**kinds[0], **rest}
    return {**rest, "anyOf": kinds} if kinds else rest
