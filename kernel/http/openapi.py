"""The OpenAPI 3.1 document, built from the route records alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema

from kernel import __version__
from kernel.http.endpoint import Endpoint, is_model
from kernel.http.responses import ErrorBody, HTTPValidationError
from kernel.http.routes import RawBody, Route, Upload

_REF = "#/components/schemas/{model}"
_ALWAYS = (400, 401, 429, 503)


def build_document(endpoints: Iterable[Endpoint], title: str) -> dict[str, Any]:
    """The document of these endpoints; hidden routes stay out."""
    shown = sorted(
        (e for e in endpoints if not e.route.hidden), key=lambda e: (e.template.openapi, e.route.method)
    )
    schemas = _Schemas(shown)
    paths: dict[str, Any] = {}
    taken: set[str] = set()
    for endpoint in shown:
        item = paths.setdefault(endpoint.template.openapi, {})
        item[endpoint.route.method.lower()] = _operation(endpoint, schemas, taken)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": title,
            "version": __version__,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas.definitions,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
    }


def without_descriptions(document: Any) -> Any:
    """The document without free text: the published snapshot (spec 9.4)."""
    if isinstance(document, list):
        return [without_descriptions(item) for item in document]
    if not isinstance(document, dict):
        return document
    return {
        key: without_descriptions(value)
        for key, value in document.items()
        if not (key in ("description", "summary") and isinstance(value, str))
    }


class _Schemas:
    """The JSON Schemas of all models, each under its name."""

    def __init__(self, endpoints: list[Endpoint]) -> None:
        models = {(ErrorBody, "serialization"), (HTTPValidationError, "serialization")}
        for endpoint in endpoints:
            models |= _models(endpoint.route)
        ordered: Any = sorted(models, key=lambda pair: (pair[0].__qualname__, pair[0].__module__, pair[1]))
        self._refs, top = models_json_schema(ordered, ref_template=_REF)
        self.definitions: dict[str, Any] = dict(sorted(top.get("$defs", {}).items()))

    def of(self, declared: Any, mode: str) -> dict[str, Any]:
        """The schema of a declared body or answer."""
        if is_model(declared):
            return dict(self._refs[(declared, mode)])  # type: ignore[index]
        schema = TypeAdapter(declared).json_schema(ref_template=_REF, mode=mode)  # type: ignore[arg-type]
        self.definitions.update(schema.pop("$defs", {}))
        return schema


def _models(route: Route) -> set[tuple[type[BaseModel], str]]:
    found: set[tuple[type[BaseModel], str]] = set()
    if is_model(route.body):
        found.add((route.body, "validation"))
    if is_model(route.returns):
        found.add((route.returns, "serialization"))
    return found


def _operation(endpoint: Endpoint, schemas: _Schemas, taken: set[str]) -> dict[str, Any]:
    route = endpoint.route
    operation: dict[str, Any] = {
        "operationId": _operation_id(endpoint, taken),
        "tags": [route.tag],
        "summary": route.summary,
        "description": f"{route.description}\n\nAccess: {route.access.description or route.access}.",
        "responses": _responses(endpoint, schemas),
    }
    parameters = [*_path_parameters(endpoint), *_query_parameters(route, schemas)]
    if parameters:
        operation["parameters"] = parameters
    body = _request_body(route, schemas)
    if body is not None:
        operation["requestBody"] = body
    operation["security"] = [{}, {"bearer": []}] if route.access.kind == "public" else [{"bearer": []}]
    if route.deprecated:
        operation["deprecated"] = True
    return operation


def _operation_id(endpoint: Endpoint, taken: set[str]) -> str:
    """Service and handler name; the path makes it unique where that is not enough."""
    base = re.sub(r"\W+", "_", f"{endpoint.service}_{endpoint.route.name}")
    if base in taken:
        base += "_" + re.sub(
            r"\W+", "_", f"{endpoint.route.method.lower()}{endpoint.template.openapi}"
        ).strip("_")
    taken.add(base)
    return base


def _path_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    template = endpoint.template
    return [{"name": n, "in": "path", "required": True, "schema": template.schema(n)} for n in template.kinds]


def _query_parameters(route: Route, schemas: _Schemas) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    schema = route.query.model_json_schema(ref_template=_REF)
    schemas.definitions.update(schema.pop("$defs", {}))
    required = set(schema.get("required", ()))
    return [
        _query_parameter(name, dict(item), name in required) for name, item in schema["properties"].items()
    ]


def _query_parameter(name: str, schema: dict[str, Any], required: bool) -> dict[str, Any]:
    description = schema.pop("description", None)
    schema.pop("title", None)
    parameter = {"name": name, "in": "query", "required": required, "schema": schema}
    if description:
        parameter["description"] = description
    return parameter


def _request_body(route: Route, schemas: _Schemas) -> dict[str, Any] | None:
    if route.body is None:
        return None
    if isinstance(route.body, Upload):
        return {"required": True, "content": {"multipart/form-data": {"schema": _upload_schema(route.body)}}}
    if isinstance(route.body, RawBody):
        schema = route.body.schema or {}
        return {"content": {media_type: {"schema": schema} for media_type in route.body.media_types}}
    schema = schemas.of(route.body, "validation")
    optional = any(item == {"type": "null"} for item in schema.get("anyOf", ()))
    return {"required": not optional, "content": {"application/json": {"schema": schema}}}


def _upload_schema(upload: Upload) -> dict[str, Any]:
    file = {"type": "string", "contentMediaType": "application/octet-stream"}
    return {
        "type": "object",
        "required": [upload.file_field],
        "properties": {upload.file_field: file, **upload.fields},
    }


def _responses(endpoint: Endpoint, schemas: _Schemas) -> dict[str, Any]:
    route = endpoint.route
    found: dict[int, dict[str, Any]] = {}
    for status in (route.status, *route.also_statuses):
        found[status] = _success(route, status, schemas)
    for status in sorted(_error_statuses(endpoint)):
        found.setdefault(status, _error(status))
    return {str(status): found[status] for status in sorted(found)}


def _success(route: Route, status: int, schemas: _Schemas) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if status != 204:
        schema = {} if route.returns is None else schemas.of(route.returns, "serialization")
        answer["content"] = {route.media_type: {"schema": schema}}
        for media_type in route.also_media_types:
            answer["content"][media_type] = {"schema": {"type": "string"}}
    return answer


def _error_statuses(endpoint: Endpoint) -> set[int]:
    """Declared errors, and those that the kernel itself answers for such a route."""
    route = endpoint.route
    statuses = {error if isinstance(error, int) else error.status for error in route.errors}
    statuses.update(_ALWAYS)
    if route.access.kind != "public" or endpoint.plugin is not None:
        statuses.add(403)
    if endpoint.template.kinds:
        statuses.add(404)
    if "int" in endpoint.template.kinds.values() or route.query is not None:
        statuses.add(422)
    if route.body is not None:
        statuses.update((408, 413, 415, 422))
    return statuses


def _error(status: int) -> dict[str, Any]:
    model = "HTTPValidationError" if status == 422 else "ErrorBody"
    schema = {"$ref": _REF.format(model=model)}
    return {"description": HTTPStatus(status).phrase, "content": {"application/json": {"schema": schema}}}
