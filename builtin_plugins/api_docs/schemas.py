"""JSON Schemas of all that an application's routes declare, made together so that names are unique."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from pydantic import PydanticUserError, TypeAdapter
from pydantic_core import PydanticOmit

from kernel.sdk import RawBody, Upload
from kernel.sdk.http import Route

Mode = Literal["validation", "serialization"]
Declared = tuple[Any, Mode]

REF = "#/components/schemas/{model}"
UNDESCRIBABLE = (PydanticUserError, PydanticOmit, TypeError, ValueError)


class Schemas:
    """The schemas of these types; `definitions` holds those that others refer to, by name."""

    def __init__(self, declared: Iterable[Declared]) -> None:
        unique = sorted(set(declared), key=lambda pair: (str(pair[0]), pair[1]))
        schemas_by_key, top = TypeAdapter.json_schemas(
            [((kind, mode), mode, TypeAdapter(kind)) for kind, mode in unique], ref_template=REF
        )
        self._by_type = {key: schema for (key, _), schema in schemas_by_key.items()}
        self.definitions: dict[str, Any] = dict(sorted(top.get("$defs", {}).items()))
        _make_titles_unique(self.definitions)

    def of(self, kind: Any, mode: Mode) -> dict[str, Any]:
        """The schema of a declared body or response, usually a reference."""
        return dict(self._by_type[(kind, mode)])

    def resolved(self, kind: Any, mode: Mode) -> dict[str, Any]:
        """The schema with its reference resolved."""
        return self.target(self.of(kind, mode))

    def target(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The target of a reference; any other schema unchanged."""
        name = str(schema.get("$ref", "")).rpartition("/")[2]
        return dict(self.definitions.get(name, schema))

    def used_by(self, document: Any) -> dict[str, Any]:
        """The definitions that the document refers to, directly or through others."""
        used: set[str] = set()
        waiting = _references(document)
        while waiting:
            name = waiting.pop()
            if name not in used:
                used.add(name)
                waiting |= _references(self.definitions[name])
        return {name: schema for name, schema in self.definitions.items() if name in used}


def declared_by(route: Route) -> set[Declared]:
    """The types of a route's body, query, response and errors."""
    errors = route.error_format
    types: set[Declared] = {(errors.body, "serialization"), (errors.invalid, "serialization")}
    if route.body is not None and not isinstance(route.body, Upload | RawBody):
        types.add((route.body, "validation"))
    if route.query is not None:
        types.add((route.query, "validation"))
    if route.returns is not None:
        types.add((route.returns, "serialization"))
    return types


def can_be_described(route: Route) -> bool:
    """Whether every type that the route declares has a JSON Schema."""
    try:
        Schemas(declared_by(route))
    except UNDESCRIBABLE:
        return False
    return True


def _make_titles_unique(definitions: dict[str, Any]) -> None:
    """Add to each title that several definitions have what tells them apart: `Thing (notes)`.

    Generators of clients name classes after titles, and some leave out the second class of a name.
    """
    named = defaultdict(list)
    for name, schema in definitions.items():
        named[schema.get("title")].append(name)
    for title, names in named.items():
        if title is not None and len(names) > 1:
            for name, different in zip(names, _differences(names), strict=True):
                definitions[name]["title"] = f"{title} ({different})"


def _differences(names: list[str]) -> Sequence[str]:
    """A part of each name in which all differ, or the names; they are like `package__module__Thing`."""
    columns = zip(*(re.split("__|-", name) for name in names), strict=False)
    return next((words for words in columns if len(set(words)) == len(names)), names)


def _references(value: Any) -> set[str]:
    if isinstance(value, dict):
        reference = value.get("$ref")
        here = {reference.rpartition("/")[2]} if isinstance(reference, str) else set()
        return here.union(*map(_references, value.values()))
    if isinstance(value, list):
        return set().union(*map(_references, value))
    return set()
