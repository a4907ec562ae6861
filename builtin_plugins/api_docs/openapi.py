"""The OpenAPI 3.1 document, built only from the route records."""

from __future__ import annotations

import json
import logging
import re
import shlex
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from kernel.sdk import PLATFORM_VERSION, RawBody, Upload
from kernel.sdk.http import BoundRoute, Route

from .schemas import UNDESCRIBABLE, Schemas, can_be_described, declared_by

log = logging.getLogger("platform.http")

_EVENTS = "text/event-stream"
_MULTIPART = "multipart/form-data"
_FORMS = (_MULTIPART, "application/x-www-form-urlencoded")
_BYTES = {"type": "string", "format": "binary"}
_ALWAYS = (400, 401, 429, 503)
# Docstrings cite the project's specification, which readers of the document don't have.
_SOURCE = re.compile(r"(?<!\s)\s*+\((?:spec (?:section )?\d|wire-facts|decisions\.md)[^()]*\)")


def build_document(endpoints: Iterable[BoundRoute], title: str) -> dict[str, Any]:
    """The document of these endpoints, without hidden routes."""
    visible = sorted(
        (e for e in endpoints if not e.route.hidden), key=lambda e: (e.template.openapi, e.route.method)
    )
    visible, schemas = _schemas(visible)
    paths: dict[str, Any] = {}
    operation_ids: set[str] = set()
    for endpoint in visible:
        item = paths.setdefault(endpoint.template.openapi, {})
        item[endpoint.route.method.lower()] = _operation(endpoint, schemas, operation_ids)
    security = {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}}
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": title,
            "version": PLATFORM_VERSION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        # Relative to the document: a proxy may serve it under any path, as the gateway does a service's.
        "servers": [{"url": "."}],
        "paths": paths,
        "components": {"schemas": schemas.used_by(paths), "securitySchemes": security},
    }
    return dict(_without_sources(document))


def _without_sources(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_sources(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_sources(item) for key, item in value.items()}
    return _SOURCE.sub("", value) if isinstance(value, str) else value


def _schemas(endpoints: list[BoundRoute]) -> tuple[list[BoundRoute], Schemas]:
    """The endpoints that can be described, and the schemas of all types that they declare."""
    try:
        return endpoints, _schemas_of(endpoints)
    except UNDESCRIBABLE:
        described = [endpoint for endpoint in endpoints if can_be_described(endpoint.route)]
        for endpoint in (endpoint for endpoint in endpoints if endpoint not in described):
            log.error("%s %s has no schema and is left out", endpoint.route.method, endpoint.template.path)
        return described, _schemas_of(described)


def _schemas_of(endpoints: list[BoundRoute]) -> Schemas:
    return Schemas(declared for endpoint in endpoints for declared in declared_by(endpoint.route))


def without_descriptions(document: Any) -> Any:
    """The document without free text, for the published snapshot (spec 9.4)."""
    if isinstance(document, list):
        return [without_descriptions(item) for item in document]
    if not isinstance(document, dict):
        return document
    bare = {
        key: without_descriptions(value)
        for key, value in document.items()
        if not (key in ("description", "summary") and isinstance(value, str))
    }
    if isinstance(document.get("responses"), dict):
        for response in bare["responses"].values():
            response.setdefault("description", "")  # OpenAPI requires one
    return bare


def _operation(endpoint: BoundRoute, schemas: Schemas, operation_ids: set[str]) -> dict[str, Any]:
    route = endpoint.route
    operation: dict[str, Any] = {
        "operationId": _operation_id(endpoint, operation_ids),
        "tags": [route.tag],
        "summary": route.summary,
        "description": f"{route.description}\n\n{_who(route)}",
        "responses": _responses(endpoint, schemas),
    }
    parameters = [*_path_parameters(endpoint), *_query_parameters(route, schemas)]
    if parameters:
        operation["parameters"] = parameters
    body = _request_body(route, schemas)
    if body is not None:
        operation["requestBody"] = body
    operation["security"] = [{"bearer": []}] if _takes_token(route) else []
    if _takes_token(route):
        operation["x-token-scopes"] = [] if route.judges_credential else list(route.token_scopes)
    if route.deprecated:
        operation["deprecated"] = True
    return operation


def _takes_token(route: Route) -> bool:
    """Whether a client should send its token. By the standard, an empty alternative would make it optional,
    but Swagger UI then shows a closed padlock.
    """
    return route.access.kind != "public" or route.judges_credential or route.access.better_with_token


def _who(route: Route) -> str:
    """Who may call a route, and what a personal access token needs there."""
    access = f"Access: {route.access.description or route.access}."
    if not _takes_token(route):
        return access
    if not route.token_scopes or route.judges_credential:
        return f"{access} Personal access tokens are refused."
    scopes = " or ".join(f"`{name}`" for name in route.token_scopes)
    return f"{access} Personal access tokens need the scope {scopes}."


def _operation_id(endpoint: BoundRoute, operation_ids: set[str]) -> str:
    """Service and handler name, made unique by the path if necessary."""
    base = re.sub(r"\W+", "_", f"{endpoint.service}_{endpoint.route.name}")
    if base in operation_ids:
        base += "_" + re.sub(
            r"\W+", "_", f"{endpoint.route.method.lower()}{endpoint.template.openapi}"
        ).strip("_")
    operation_ids.add(base)
    return base


def _path_parameters(endpoint: BoundRoute) -> list[dict[str, Any]]:
    template = endpoint.template
    return [{"name": n, "in": "path", "required": True, "schema": template.schema(n)} for n in template.kinds]


def _query_parameters(route: Route, schemas: Schemas) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    schema = schemas.resolved(route.query, "validation")
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


def _request_body(route: Route, schemas: Schemas) -> dict[str, Any] | None:
    if route.body is None:
        return None
    if isinstance(route.body, Upload):
        return _upload(route.body)
    if isinstance(route.body, RawBody):
        return _raw_body(route.body)
    schema = schemas.of(route.body, "validation")
    optional = any(item == {"type": "null"} for item in schema.get("anyOf", ()))
    content = {"schema": schema, **_example(schemas, schema)}
    return {"required": not optional, "content": {"application/json": content}}


def _raw_body(body: RawBody) -> dict[str, Any]:
    """Describe a raw body. Swagger UI shows a form's parts, but not the schema's description: repeat it."""
    description = {"description": body.schema["description"]} if "description" in body.schema else {}
    return {**description, "content": {media_type: _raw(body, media_type) for media_type in body.media_types}}


def _raw(body: RawBody, media_type: str) -> dict[str, Any]:
    example = body.examples.get(media_type)
    if example is None:
        return {"schema": body.schema}
    if media_type in _FORMS and isinstance(example, dict):
        parts = {name: {"type": "string", **part} for name, part in body.schema.get("properties", {}).items()}
        return {"schema": {**body.schema, "properties": _with_examples(parts, example)}, "example": example}
    return {"schema": body.schema, "example": example}


def _with_examples(parts: dict[str, Any], example: dict[str, Any]) -> dict[str, Any]:
    """A form's parts, each with its value from the example: Swagger UI fills in nothing else."""
    fields = {name: {**parts.get(name, {"type": "string"}), "examples": [example[name]]} for name in example}
    return {**parts, **fields}


def _example(schemas: Schemas, schema: dict[str, Any]) -> dict[str, Any]:
    """The example of the body's model, to put beside the schema: not every viewer looks inside it."""
    for part in (schema, *schema.get("anyOf", ())):
        examples = schemas.target(part).get("examples")
        if examples:
            return {"example": examples[0]}
    return {}


def _upload(upload: Upload) -> dict[str, Any]:
    """A form with a file. Swagger UI does not show its example, so the description has it."""
    example = upload.example or {}
    # OpenAPI 3.1 asks for contentMediaType; many generators of clients only know 3.0's format.
    file = {**_BYTES, "contentMediaType": "application/octet-stream", "description": upload.file}
    parts = _with_examples({upload.file_field: file, **upload.fields}, example)
    schema = {"type": "object", "required": [upload.file_field], "properties": parts}
    if not example:
        return {"required": True, "content": {_MULTIPART: {"schema": schema}}}
    return {
        "required": True,
        "description": f"With curl: `{_curl(upload, example)}`",
        "content": {_MULTIPART: {"schema": schema, "example": example}},
    }


def _curl(upload: Upload, example: dict[str, Any]) -> str:
    """The curl options that send the parts."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in example.items()}
    if upload.file_field in texts:
        texts[upload.file_field] = f"@{texts[upload.file_field]}"
    return " ".join(f"-F {name}={shlex.quote(text)}" for name, text in texts.items())


def _responses(endpoint: BoundRoute, schemas: Schemas) -> dict[str, Any]:
    route = endpoint.route
    responses: dict[int, dict[str, Any]] = {}
    for status in (route.status, *route.also_statuses):
        responses[status] = _success(route, status, schemas)
    for status in sorted(_error_statuses(endpoint)):
        responses.setdefault(status, _error(status, endpoint.route, schemas))
    return {str(status): responses[status] for status in sorted(responses)}


def _success(route: Route, status: int, schemas: Schemas) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if status != 204 and not 300 <= status < 400:
        schema = {} if route.returns is None else schemas.of(route.returns, "serialization")
        other = _BYTES if route.returns is bytes else {"type": "string"}
        content = {
            route.media_type: {"schema": schema},
            **{media_type: {"schema": dict(other)} for media_type in route.also_media_types},
        }
        if _EVENTS in content:
            # The events of a stream are described in words: OpenAPI 3.1 has no schema for them.
            content[_EVENTS] = {}
        answer["content"] = content
    return answer


def _error_statuses(endpoint: BoundRoute) -> set[int]:
    """The declared errors, and those that the kernel itself raises for such a route."""
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


def _error(status: int, route: Route, schemas: Schemas) -> dict[str, Any]:
    error_format = route.error_format
    schema = schemas.of(error_format.invalid if status == 422 else error_format.body, "serialization")
    return {"description": HTTPStatus(status).phrase, "content": {"application/json": {"schema": schema}}}
