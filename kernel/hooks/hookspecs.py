"""Every hook that the kernel calls. The docstrings are the reference; `platformctl hooks` prints them.

A `register_…` hook is a plain function that returns declarations; it is called once, at the start. An `on_…`
hook reports that something happened. All others are questions. An implementation may take fewer arguments
than its specification, and may be async unless it is a declaration or its specification says ``_now``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aiohttp import web

from kernel.auth.ownership import Scope
from kernel.auth.permissions import Decision
from kernel.auth.principals import Principal
from kernel.errors import PluginFailed, PluginTooSlow
from kernel.hooks.types import PROMPTLY, Failure, hookspec

if TYPE_CHECKING:
    import typer
    from sqlalchemy.orm import Session

    from kernel.auth.permissions import Permission
    from kernel.db.base import Tables
    from kernel.events.events import Event
    from kernel.gateway.services import Service
    from kernel.http.context import Context
    from kernel.http.router import Serve
    from kernel.http.routes import Access, BoundRoute, RouteTable
    from kernel.jobs.declarations import JobRef
    from kernel.observe.health import HealthCheck
    from kernel.platform import Platform
    from kernel.plugins.actions import Action
    from kernel.plugins.diagnostics import Diagnostic, PluginPackage
    from kernel.plugins.resource_keys import ResourceKey
    from kernel.plugins.resources import Resource
    from kernel.process.start_guards import StartGuard
    from kernel.settings.loading import Settings
    from kernel.stores.offers import StoreOffer


@hookspec.declaration
def register_hookspecs() -> Sequence[object]:
    """Hooks that this plugin defines for others to implement: specifications, or modules of them.

    Asked before any other hook, so that plugins that load later can implement them.
    """


@hookspec.declaration
def register_settings() -> type[Settings] | None:
    """The plugin's settings class, with every field typed and described.

    The kernel fills it from the environment and from the plugin's section of `config.yaml`, and returns it
    from ``platform.settings_of(YourSettings)``. A wrong value keeps the plugin out of service, with a reason
    that names the field.
    """


@hookspec.declaration
def register_tables() -> Tables | None:
    """The plugin's tables: ``Tables(Base, migrations_folder)``. All table names start with the plugin's name.

    Migrations run in the order of `requires`, with one version table per plugin. If a migration fails, the
    plugin is taken out of service.
    """


@hookspec.declaration
def register_permissions() -> Sequence[Permission]:
    """The permission keys of the plugin, each with a description. Listed at ``GET /v1/permissions``."""


@hookspec.declaration
def register_routes() -> Sequence[RouteTable]:
    """Routes that the gateway serves itself, with their full public paths (``/v1/<plugin>/...``).

    The routes of a ``RouteTable(..., service=NAME)`` belong to that service instead, whichever plugin
    provides it; their paths start at the service's root.
    """


@hookspec.declaration
def register_app_setups() -> Sequence[Callable[[web.Application], None]]:
    """Functions that get each aiohttp application (the gateway's, and those of services at their own port)
    before it starts, for aiohttp's middlewares, signals and cleanup contexts:
    ``[lambda app: app.middlewares.append(timed)]``.

    Such middlewares run within the platform's own: the sender is known and counted, and
    ``request[CONTEXT]`` has both; access is decided after them. Routes can't be added: declare them.
    """


@hookspec.declaration
def register_services() -> Sequence[Service]:
    """Services with their own root and OpenAPI document, each with the public prefixes at which the gateway
    mounts it: ``Service("shelf", [routes], self.version, mounts=("/v1/shelf",), port=8042)``.

    A service can run in the gateway's process or on another machine (`PLATFORM_SERVICE_URLS`). A name, prefix
    or port that is taken keeps the plugin out of service.
    """


@hookspec.declaration
def register_stores() -> Sequence[StoreOffer[Any]]:
    """Stores that the plugin brings, for keeping files, counting requests, or of a kind of some plugin.

    A setting such as `PLATFORM_BLOB_STORE` or `PLATFORM_CACHE_STORE` chooses one by name. Only that
    one is opened, after the migrations (before them if it is `early`), within
    `PLATFORM_PLUGIN_START_TIMEOUT`. If it is missing or can't be opened, the platform does not start.
    """


@hookspec.declaration
def register_start_guards() -> Sequence[StartGuard]:
    """What to do before a start touches the database: alone, or before migrations. For backups.

    The platform does not exist yet: a guard gets settings, database, secrets and schema. Commands such as
    `platformctl users` run none, except before migrations.
    """


@hookspec.declaration
def register_resources() -> Sequence[Resource[Any]]:
    """What to open at the start and close at shutdown: clients, engines, watchers.

    Each is an async context manager made from the platform; its value is ``platform.resource(KEY)``. Opening
    must finish within `PLATFORM_PLUGIN_START_TIMEOUT`; if it fails, the plugin is taken out of service.
    """


@hookspec.declaration
def register_health_checks() -> Sequence[HealthCheck]:
    """Checks shown under ``checks`` of ``/health``. If an optional one fails, the status is `degraded`."""


@hookspec.declaration
def register_commands() -> Sequence[tuple[str, typer.Typer]]:
    """Command groups for ``platformctl <name> …``.

    A command that takes a `typer.Context` reaches the platform by ``ctx.obj(work)``: it runs the
    coroutine function ``work(platform)`` and returns its result. The database is open, the resources of
    plugins are not.
    """


@hookspec.declaration
def register_diagnostics() -> Sequence[Diagnostic]:
    """Checks for `platformctl doctor`, `status` and `upgrade --check`; they need no running server."""


@hookspec.declaration
def register_jobs() -> Sequence[JobRef]:
    """Durable jobs that a worker process can run for this plugin. Handlers must be idempotent."""


@hookspec.declaration
def register_events() -> Sequence[type[Event]]:
    """The durable events that the plugin emits. A stored event finds its class through this list.

    Names start with the plugin's name. If two plugins declare the same name, the later one is refused.
    """


@hookspec.declaration
def register_actions() -> Sequence[Action]:
    """Actions of the plugin: name, parameters as a pydantic model, access, what a call does, tier.

    One declaration creates the REST route, the function definition, the OpenAPI tool and the documentation.
    Each action names its access; a public one must be read-only. An invalid declaration keeps the plugin out
    of service.
    """


@hookspec.declaration
def register_plugin_sources() -> Sequence[ResourceKey[Any]]:
    """Sources of plugins that are documents rather than code.

    Each is a resource that the plugin opens (`register_resources`), named by its key. A process that does not
    open it has no plugins from that source. What a source must answer, and who asks it, is told by the plugin
    that lists all plugins for clients.
    """


@hookspec.all(failing="skip", seconds=PROMPTLY)
def list_other_plugins(platform: Platform) -> Mapping[str, tuple[str, str | None]] | None:
    """Plugins that are no code, by name, for `/health`: the status of each, and what is wrong with it."""


def _too_late(
    failure: Failure, platform: Platform, request: web.Request, authorization: str | None
) -> Principal | None:
    """Ask the others; if none of them knows the credential, it may be this plugin's."""
    from kernel.http.wire import TOO_LATE

    if isinstance(failure.error, TimeoutError):
        request[TOO_LATE] = failure.plugin
    return None


@hookspec.first(failing=_too_late, seconds=PROMPTLY)
def identify_actor(platform: Platform, request: web.Request, authorization: str | None) -> Principal | None:
    """Who sends this request. None means "not my kind of credential"; raise Unauthorized for a bad one.

    Asked for every request, including those for public routes, unless `recall_actor` knows; so cache what
    is slow. The kernel's own answer (bearer JWT, service token) comes last, so
    a plugin can add another scheme. An implementation that fails in any other way is reported and skipped,
    unless the database or the machine is at fault: then the request fails with 503 or 507. If it took too
    long and nobody else knows the credential, the answer is 503: raise Unauthorized for what is yours.
    """


@hookspec.first_now
def recall_actor(platform: Platform, authorization: str) -> Principal | None:
    """The sender of a credential that `identify_actor` has accepted, if all that it depends on is remembered
    and still holds; it is asked first. None for anything else.
    """


def _unheard(
    failure: Failure, ctx: Context, principal: Principal, access: Access, params: Mapping[str, int | str]
) -> Decision | None:
    """An implementation that fails may have meant to veto, so deny; public routes stay open."""
    if access.kind == "public":
        return None
    if principal.kind == "anonymous":
        return Decision.DENY
    if failure.is_machines:
        raise failure.error
    if isinstance(failure.error, TimeoutError):
        raise PluginTooSlow(failure.plugin, failure.hook)
    raise PluginFailed(failure.plugin, failure.hook, "could not decide whether you may do this")


@hookspec.all(failing=_unheard, seconds=PROMPTLY)
def decide_access(
    ctx: Context, principal: Principal, access: Access, params: Mapping[str, int | str]
) -> Decision | None:
    """Whether `principal` can use a route with this `access`. All implementations are asked.

    `params` are the parameters of the route's path, as the handler gets them.
    None means no opinion, `Decision.ALLOW` grants, `Decision.DENY` vetoes: one veto is enough, and without a
    grant the answer is no. If an implementation fails, everything but public routes stays closed: the
    caller is told which plugin could not decide.
    """


@hookspec.first(seconds=PROMPTLY)
def find_scope(platform: Platform, principal: Principal) -> Scope | None:
    """What the caller currently belongs to: the teams and organizations whose rows it can read.

    Asked for every signed-in account. Without an answer, the caller sees its own rows and shared ones.
    """


@hookspec.declaration
def offer_pages(endpoints: Sequence[BoundRoute], title: str) -> Mapping[str, Serve] | None:
    """Pages about an application, the gateway or a service at its own root: what serves GET, by path.

    `endpoints` are the routes of the application. The pages are open to everybody and no part of the API.
    """


@hookspec.first_now
def find_disabled_plugins(platform: Platform, session: Session | None) -> Mapping[str, str] | None:
    """The disabled plugins and the reason for each, for platformctl.

    `session` is None where there is no database yet.
    """


@hookspec.first
def find_plugin_package(platform: Platform, name: str, address: str | None) -> PluginPackage | None:
    """What a catalog of plugins says about the plugin `name`, for ``platformctl plugins install``.

    The catalog is that of the platform at `address`, and then the database is not open; without an address,
    it is this platform's own. None if it has no such plugin. What is answered is checked before pip gets it.
    """


@hookspec.notification(seconds=300)
def on_event(platform: Platform, event: Event) -> None:
    """Something was committed. A worker delivers durable events at least once, with retries.

    Other events are delivered once, right after the commit, in the process that committed. An error in
    one plugin never stops delivery to the others; an implementation that takes more than five minutes
    fails. Use a job for long work.
    """


@hookspec.notification
def on_start(platform: Platform) -> None:
    """Everything is open and the routes are checked; the process is about to serve requests.

    Must finish within `PLATFORM_PLUGIN_START_TIMEOUT`; if it fails, the plugin is taken out of service.
    """
