"""Read-only tools as an OpenAPI document, in the narrow form that chat programs' tool servers read.

Open WebUI only reads an operation's own parameters, and only the type, the description and an `enum` of texts
in their schemas; it writes each argument into the query as text. So every parameter here has one plain type:
anything else (lists, objects, unions) is a text that contains JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from builtin_plugins.tools.api import Tool

VERSION = "3.1.0"
_SUMMARY = 120
_PLAIN = frozenset({"string", "integer", "number", "boolean"})


def document(tools: Iterable[Tool], address: str, version: str) -> dict[str, Any]:
    """The document of the tools that a GET calls."""
    paths = {tool.endpoint: {"get": _operation(tool)} for tool in tools if tool.method == "GET"}
    return {
        "openapi": VERSION,
        "info": {
            "title": "Platform tools",
            "description": "Read-only tools of the plugins in service.",
            "version": version,
        },
        "servers": [{"url": address}],
        "paths": paths,
    }


def _operation(tool: Tool) -> dict[str, Any]:
    required = tool.parameters.get("required", ())
    properties = tool.parameters.get("properties", {})
    return {
        "operationId": tool.name,
        "summary": tool.description.split("\n")[0][:_SUMMARY],
        "description": tool.description,
        "parameters": [_parameter(name, schema, name in required) for name, schema in properties.items()],
        "responses": {
            "200": {
                "description": "What the tool returns.",
                "content": {"application/json": {"schema": {"type": "object"}}},
            }
        },
    }


def _parameter(name: str, schema: Mapping[str, Any], required: bool) -> dict[str, Any]:
    plain, hint = _plain(schema)
    description = ". ".join(filter(None, (str(schema.get("description", "")).rstrip("."), hint)))
    plain["description"] = description
    return {"name": name, "in": "query", "required": required, "schema": plain, "description": description}


def _plain(schema: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """One plain type, with a description of what it leaves out."""
    kind, choices = schema.get("type"), schema.get("enum")
    if "const" in schema:
        choices = [schema["const"]]
    if choices and all(isinstance(choice, str) for choice in choices):
        return {"type": "string", "enum": list(choices)}, ""
    hint = f"One of {', '.join(json.dumps(choice) for choice in choices)}" if choices else ""
    if kind in _PLAIN:
        return {"type": kind}, hint or _bounds(schema)
    if choices and all(isinstance(choice, int) and not isinstance(choice, bool) for choice in choices):
        return {"type": "integer"}, hint
    return {"type": "string"}, hint or _as_json(schema)


def _bounds(schema: Mapping[str, Any]) -> str:
    words = (("minimum", "at least"), ("maximum", "at most"), ("default", "default"))
    bounds = [f"{word} {json.dumps(schema[key])}" for key, word in words if key in schema]
    text = ", ".join(bounds)
    return text[:1].upper() + text[1:]


def _as_json(schema: Mapping[str, Any]) -> str:
    """How to write a value without a plain type as text."""
    kinds = [str(one.get("type")) for one in schema.get("anyOf", ()) if isinstance(one, Mapping)]
    if kinds and all(kind in _PLAIN for kind in kinds):
        return f"One of: {', '.join(kinds)}"
    if schema.get("type") == "array":
        return 'JSON text of a list, such as ["a", "b"]'
    fields = ", ".join(schema.get("properties", {}))
    return f"JSON text of an object{f' with {fields}' if fields else ''}"
