"""Path templates: ``/knowledge-bases/{kb_id:uuid}`` to aiohttp's syntax, OpenAPI's, and typed values."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from kernel.errors import NotFound, Unprocessable
from kernel.http.validation import parse_int

_PARAMETER = re.compile(r"\{(\w+)(?::(\w+))?\}")

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


class PathTemplate:
    """A path with typed parameters."""

    def __init__(self, path: str) -> None:
        self.path = path
        found = _PARAMETER.findall(path)
        kinds = {name: kind or None for name, kind in found}
        unknown = {kind for kind in kinds.values() if kind not in _SCHEMAS}
        if unknown:
            raise ValueError(f"path '{path}': unknown parameter type {sorted(map(str, unknown))}")
        self.kinds = kinds
        self._parsers = [(name, _PARSERS[kind]) for name, kind in kinds.items()]

    @property
    def aiohttp(self) -> str:
        """The path in aiohttp's router syntax."""
        return _PARAMETER.sub(lambda m: f"{{{m[1]}:.*}}" if m[2] == "path" else f"{{{m[1]}}}", self.path)

    @property
    def openapi(self) -> str:
        """The path in OpenAPI's syntax; also the `endpoint` label of metrics."""
        return _PARAMETER.sub(lambda m: f"{{{m[1]}}}", self.path)

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
