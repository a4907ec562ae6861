"""The tools that a server claims to have, checked for what the platform can pass on."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

_LONGEST_DESCRIPTION = 4_000
_LARGEST_SCHEMA = 64 * 1024
_MOST_NODES, _DEEPEST = 2_000, 24
_NAME = re.compile(r"[\x21-\x7e]{1,128}")
_DROPPED = frozenset({"$defs", "definitions", "$schema", "$id", "x-mcp-header"})
# The names inside these are the server's choice: a property may be called `definitions`.
_OF_NAMES = frozenset({"properties", "patternProperties", "dependentSchemas"})


class ToolUnfit(Exception):
    """A tool that can't be offered; the text says why."""


@dataclass(frozen=True)
class Definition:
    """One tool of a server. `digest` changes with anything that a model is told about it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    hints: Mapping[str, Any]
    digest: str


def read_definition(claimed: Any) -> Definition:
    """A tool as the server describes it. Raises Unfit."""
    name = claimed.get("name") if isinstance(claimed, dict) else None
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise ToolUnfit("a tool has no usable name")
    description, hints = claimed.get("description", ""), claimed.get("annotations", {})
    if not isinstance(description, str) or len(description) > _LONGEST_DESCRIPTION:
        raise ToolUnfit(f"'{name}' has a description that is not text, or is too long")
    fields = {"description": description, "inputSchema": claimed.get("inputSchema"), "annotations": hints}
    digest = hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
    parameters = _parameters(name, claimed.get("inputSchema"))
    return Definition(name, description, parameters, hints if isinstance(hints, dict) else {}, digest)


def is_allowed(name: str, patterns: list[str]) -> bool:
    """Whether the operator allows a tool."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _parameters(name: str, schema: Any) -> dict[str, Any]:
    """The schema of the arguments without references, as every client can read it."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise ToolUnfit(f"'{name}' has no schema of type object")
    if len(json.dumps(schema)) > _LARGEST_SCHEMA:
        raise ToolUnfit(f"'{name}' has a schema of more than {_LARGEST_SCHEMA // 1024} KB")
    try:
        plain = _Plain(schema).write(schema, 0, ())
        Draft202012Validator.check_schema(plain)
    except (SchemaError, RecursionError):
        raise ToolUnfit(f"'{name}' has an invalid schema") from None
    except ToolUnfit as why:
        raise ToolUnfit(f"'{name}' has a schema that {why}") from None
    return {"properties": {}, **plain}


class _Plain:
    """Expands references in a schema; limited, so that a small text can't become a huge one."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._nodes = 0

    def write(self, node: Any, depth: int, inside: tuple[str, ...]) -> Any:
        self._nodes += 1
        if self._nodes > _MOST_NODES or depth > _DEEPEST:
            raise ToolUnfit("is too large")
        if isinstance(node, list):
            return [self.write(item, depth + 1, inside) for item in node]
        if not isinstance(node, dict):
            return node
        reference = node.get("$ref")
        if reference is None:
            members = {key: value for key, value in node.items() if key not in _DROPPED}
            return {key: self._under(key, value, depth + 1, inside) for key, value in members.items()}
        if reference in inside:
            return {"type": "object"}
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return self.write({**self._target(reference), **rest}, depth + 1, (*inside, reference))

    def _under(self, key: str, value: Any, depth: int, inside: tuple[str, ...]) -> Any:
        if key in _OF_NAMES and isinstance(value, dict):
            return {name: self.write(schema, depth + 1, inside) for name, schema in value.items()}
        return self.write(value, depth, inside)

    def _target(self, reference: Any) -> Mapping[str, Any]:
        parts = reference.split("/") if isinstance(reference, str) else []
        if parts[:1] != ["#"]:
            raise ToolUnfit("refers to something outside")
        node: Any = self._root
        for part in parts[1:]:
            node = node.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
        if not isinstance(node, dict):
            raise ToolUnfit("refers to nothing")
        return node
