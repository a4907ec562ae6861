"""The route table: a route is declared completely on its decorator (house rule 2)."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal, Protocol, TypeVar

from pydantic import BaseModel, TypeAdapter

from kernel.auth.permissions import Permission
from kernel.auth.principals import TokenScope
from kernel.errors import PlatformError
from kernel.http.context import ErrorFormat
from kernel.http.error_formats import PLAIN_ERRORS
from kernel.http.router import PathTemplate
from kernel.settings.loading import Settings

_MODELS = 1024  # more than routes declare; models of removed plugins are evicted

_LISTS = ("errors", "also_media_types", "also_statuses", "token_scopes")

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
Handler = Callable[..., Awaitable[Any]]
H = TypeVar("H", bound=Handler)


@dataclass(frozen=True)
class Access:
    """Who can use a route.

    `within` is the path parameter with the id to which a scoped permission refers. With `or_admin`, instance
    administrators can use the route too; with `or_self`, so can the account whose id is in that path
    parameter.
    """

    kind: Literal["public", "authenticated", "admin", "platform_admin", "admin_or_service", "permission"]
    permission: str | None = None
    description: str = ""
    within: str | None = None
    or_admin: bool = False
    or_self: str | None = None
    better_with_token: bool = False

    def __str__(self) -> str:
        return self.permission or self.kind


PUBLIC = Access("public", description="open to anyone")
PUBLIC_OR_MORE = Access(
    "public", description="open to anyone; a token gives access to more", better_with_token=True
)
AUTHENTICATED = Access("authenticated", description="any valid token")
ADMIN = Access("admin", description="instance administrators")
PLATFORM_ADMIN = Access("platform_admin", description="Platform Admins")
ADMIN_OR_SERVICE = Access("admin_or_service", description="instance administrators and services")


def permission(
    key: str | Permission, *, within: str | None = None, or_admin: bool = False, or_self: str | None = None
) -> Access:
    """Access for those who have a permission. The key must be declared, or the platform won't start.

    For a key with the scope organization or team, `within` is the path parameter with its id. With
    `or_admin`, instance administrators can use the route too; with `or_self`, so can the account whose id is
    in that path parameter.
    """
    name = key.key if isinstance(key, Permission) else key
    others = ", or instance administrators" if or_admin else ""
    others += ", or the account itself" if or_self else ""
    return Access("permission", name, f"permission {name}{others}", within, or_admin, or_self)


@dataclass(frozen=True)
class Upload:
    """A multipart body. Describes its parts for OpenAPI; the handler reads the stream itself.

    `file` describes the file, `fields` holds the schemas of the other parts. `example` maps part names to
    sample values; the file's is its file name.
    """

    file_field: str = "file"
    fields: dict[str, dict[str, Any]] = field(default_factory=dict)
    file: str = "The file, with its name."
    example: dict[str, Any] | None = None


@dataclass(frozen=True)
class RawBody:
    """A body that the handler reads itself, in one of these media types.

    `example` is of the first type, `more_examples` has those of the others. JSON and forms are shown by an
    object, everything else (YAML, CSV) by its text.
    """

    media_types: tuple[str, ...] = ("application/json",)
    schema: dict[str, Any] = field(default_factory=lambda: {"type": "object"})
    example: dict[str, Any] | str | None = None
    more_examples: dict[str, dict[str, Any] | str] = field(default_factory=dict)

    @property
    def examples(self) -> dict[str, dict[str, Any] | str]:
        """The examples by media type."""
        first = {} if self.example is None else {self.media_types[0]: self.example}
        return {**first, **self.more_examples}


@dataclass(frozen=True, eq=False)
class Route:
    """One route as declared: the record from which access checks, validation and OpenAPI come.

    What is made from it alone is made once, for all the paths and platforms that serve it.
    """

    method: str
    path: str
    handler: Handler
    _: KW_ONLY
    tag: str
    name: str
    access: Access = None  # type: ignore[assignment]  # checked at the start, with the route's name
    body: type[BaseModel] | Upload | RawBody | Any | None = None
    query: type[BaseModel] | None = None
    returns: Any = None
    status: int = 200
    errors: tuple[type[PlatformError] | int, ...] = ()
    media_type: str = "application/json"
    also_media_types: tuple[str, ...] = ()
    also_statuses: tuple[int, ...] = ()
    max_body: int | None = None
    long: bool = False
    rate: Rate | None = None
    deprecated: bool = False
    hidden: bool = False
    open_to_writes: bool = False
    judges_credential: bool = False
    any_origin: bool = False
    fixed: bool = False
    error_format: ErrorFormat = PLAIN_ERRORS
    token_scopes: tuple[TokenScope, ...] = ("manage",)

    @cached_property
    def body_adapter(self) -> TypeAdapter[Any] | None:
        """Reads the body; None if there is none, or the handler reads it."""
        own = self.body is None or isinstance(self.body, Upload | RawBody)
        return None if own else adapter_of(self.body)

    @cached_property
    def answer_adapter(self) -> TypeAdapter[Any]:
        """Reads and writes what the handler returns."""
        return adapter_of(Any if self.returns is None else self.returns)

    @cached_property
    def answer_check(self) -> Any:
        """The check of an answer against the schema that clients see."""
        return schema_check_of(self.returns)

    @property
    def summary(self) -> str:
        """First sentence of the handler's docstring."""
        first = (inspect.getdoc(self.handler) or self.name).partition("\n\n")[0]
        return " ".join(first.split()).partition(". ")[0].rstrip(".")

    @property
    def description(self) -> str:
        """The handler's docstring."""
        return inspect.getdoc(self.handler) or ""


@dataclass(frozen=True)
class Rate:
    """A rate limit of the route's own: `limit` calls in 60 s per client address or caller, and per path or
    route.

    If `limit` is a function, it is called with the kernel's settings, or with those of the class `settings`.
    """

    limit: int | Callable[[Any], int]
    per: Literal["ip", "caller"] = "caller"
    scope: Literal["path", "route"] = "route"
    settings: type[Settings] | None = None


class BoundRoute(Protocol):
    """A route at one path of an application: what its documents tell of it.

    `service` is the name of the gateway or of the service, `plugin` who declared it; None for the kernel.
    """

    route: Route
    template: PathTemplate
    service: str
    plugin: str | None


class RouteTable:
    """Collects routes. `tag` groups them in the documentation.

    With `service`, the routes belong to that service, whichever plugin provides it: their paths start at its
    root, and the gateway shows them under the service's mounts. If no plugin declares the service, the plugin
    is out of service; one whose table is `optional` only loses these routes. `token_scopes` applies to routes
    that don't name their own.
    """

    def __init__(
        self,
        tag: str,
        *,
        service: str | None = None,
        optional: bool = False,
        token_scopes: Sequence[TokenScope] = ("manage",),
    ) -> None:
        self.tag = tag
        self.service = service
        self.optional = optional
        self.token_scopes = token_scopes
        self.routes: list[Route] = []

    def get(self, path: str, **options: Any) -> Callable[[H], H]:
        """Declare a GET route; see `route`."""
        return self.route("GET", path, **options)

    def post(self, path: str, **options: Any) -> Callable[[H], H]:
        """Declare a POST route; see `route`."""
        return self.route("POST", path, **options)

    def put(self, path: str, **options: Any) -> Callable[[H], H]:
        """Declare a PUT route; see `route`."""
        return self.route("PUT", path, **options)

    def patch(self, path: str, **options: Any) -> Callable[[H], H]:
        """Declare a PATCH route; see `route`."""
        return self.route("PATCH", path, **options)

    def delete(self, path: str, **options: Any) -> Callable[[H], H]:
        """Declare a DELETE route; see `route`."""
        return self.route("DELETE", path, **options)

    def route(self, method: str, path: str, **options: Any) -> Callable[[H], H]:
        """Declare a route; the `options` are the fields of `Route` from `access` on.

        `path` can contain ``{name}``, ``{name:uuid}`` (404 if malformed), ``{name:int}`` (422 if malformed)
        and ``{name:path}``, which the handler gets as keyword arguments, like the validated ``body`` and
        ``query``. `access` has no default on purpose: without it a plugin is kept out of service.

        `returns` is the pydantic model (or type) of the response, `status` its status, `also_statuses` other
        success statuses with the same body, and `errors` the errors that the handler raises on purpose.
        `long` raises the proxy's time limit from 30 s to 300 s. With `judges_credential`, the handler checks
        the bearer token itself, as in a token refresh. With `any_origin`, pages of any origin can read the
        responses, whatever `CORS_ALLOWED_ORIGINS` says: the handler checks the header `Origin` itself.
        `open_to_writes` allows a public write under a prefix whose writes otherwise need a token (spec 4.5).
        `fixed`: the response depends only on declarations and is the same for everyone; it is made once, and
        again when a plugin fails, is enabled or is disabled. `error_format` is for protocols with an error
        format of their own, as OpenAI has.

        `token_scopes`, by default the table's: a personal access token needs one of these (``ask``: read and
        ask, ``tools``: run tools, ``manage``: everything else). An empty list refuses it, as routes that
        change an account must.
        """

        def decorate(handler: H) -> H:
            fields = {"token_scopes": self.token_scopes, **options}
            fields |= {name: tuple(fields[name]) for name in _LISTS if name in fields}
            self.routes.append(Route(method, path, handler, tag=self.tag, name=handler.__name__, **fields))
            return handler

        return decorate


def adapter_of(kind: Any) -> TypeAdapter[Any]:
    """The adapter for a type; a model's is made only once.

    Other types can't be cache keys: `A | B` equals `B | A`, but their schemas differ.
    """
    return _of_model(kind) if _is_model(kind) or kind is Any else TypeAdapter(kind)


def schema_check_of(kind: Any) -> Any:
    """A check of JSON against the schema that clients see for a type; a model's is built only once."""
    return _check_of_model(kind) if _is_model(kind) else _schema_check(TypeAdapter(kind))


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


@lru_cache(_MODELS)
def _of_model(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@lru_cache(_MODELS)
def _check_of_model(kind: type[BaseModel]) -> Any:
    return _schema_check(_of_model(kind))


def _schema_check(adapter: TypeAdapter[Any]) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(adapter.json_schema(mode="serialization"))
