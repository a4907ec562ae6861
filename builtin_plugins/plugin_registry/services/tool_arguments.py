"""Arguments of a tool as clients send them: text is converted by the schema, then all is validated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kernel.sdk import Unprocessable

_TRUE, _FALSE = {"true", "1", "yes", "on"}, {"false", "0", "no", "off"}
_MOST_PROBLEMS = 50


def prepare(schema: Mapping[str, Any], sent: Mapping[str, Any]) -> dict[str, Any]:
    """The declared arguments, coerced. Raises Unprocessable with ``[{field, error, …}]``.

    Undeclared arguments are left out: clients pass more than a tool declares (wire-facts section 7).
    """
    declared = schema.get("properties", {})
    values = {name: _coerced(declared[name], sent[name]) for name in declared if name in sent}
    problems = [
        _problem(name, "This argument is required", "missing")
        for name in schema.get("required", ())
        if name not in values
    ]
    for name, value in values.items():
        problems += _problems(name, declared[name], value)
    if problems:
        raise Unprocessable(problems[:_MOST_PROBLEMS])
    return values


def _problem(field: str, error: str, kind: str = "value_error") -> dict[str, Any]:
    """One problem, with the fields of wire-facts 7 and those of every other 422."""
    place = ["body", "parameters", *field.split(".")]
    return {"field": field, "error": error, "type": kind, "loc": place, "msg": error}


def _problems(name: str, schema: Mapping[str, Any], value: Any) -> list[dict[str, Any]]:
    from jsonschema import Draft202012Validator

    errors = Draft202012Validator(dict(schema)).iter_errors(value)
    return [
        _problem(".".join([name, *map(str, error.absolute_path)]), error.message[:300])
        for error in sorted(errors, key=lambda error: list(map(str, error.absolute_path)))
    ]


def _coerced(schema: Mapping[str, Any], value: Any) -> Any:
    """Text as the number, boolean or JSON that the schema declares; what doesn't fit stays text."""
    if not isinstance(value, str):
        return value
    kind = schema.get("type")
    if kind == "boolean":
        word = value.strip().lower()
        return True if word in _TRUE else False if word in _FALSE else value
    if kind in ("integer", "number", "array", "object"):
        try:
            decoded = json.loads(value)
        except ValueError:
            return value
        return (
            int(decoded)
            if kind == "integer" and isinstance(decoded, float) and decoded.is_integer()
            else decoded
        )
    return value


def flattened(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as the catalog lists them: one object for each name."""
    required = set(schema.get("required", ()))
    return {
        name: {
            "type": field.get("type", "string"),
            "description": field.get("description", ""),
            **({"enum": field["enum"]} if "enum" in field else {}),
            **({"default": field["default"]} if "default" in field else {}),
            **({"required": True} if name in required else {}),
        }
        for name, field in schema.get("properties", {}).items()
    }
