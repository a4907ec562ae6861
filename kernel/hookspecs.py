"""Every hook that the kernel calls. The docstrings are the reference; `platformctl hooks` prints them.

A `register_…` hook is a plain function that returns declarations; it is called once, at the start. An `on_…`
hook reports that something happened. All others are questions. An implementation may take fewer arguments
than its specification, and may be async unless it is a declaration or its specification says ``_now``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kernel.auth.permissions import Decision
from kernel.errors import PluginFailed, PluginTooSlow
from kernel.hook_types import PROMPTLY, Failure, hookspec

if TYPE_CHECKING:
    import typer
    from aiohttp import web
    from sqlalchemy import Select
    from sqlalchemy.orm import Session

    from kernel.actions import Action
    from kernel.auth.external_schemas import SignInMethod
    from kernel.auth.models import Account, AccountChange
    from kernel.auth.ownership import Scope, SharedThing
    from kernel.auth.permissions import Permission
    from kernel.auth.principals import Principal
    from kernel.auth.schemas import OrganizationMembership
    from kernel.db.base import Tables
    from kernel.db.engine import Unit
    from kernel.events import Event
    from kernel.gateway.services import Service
    from kernel.health import HealthCheck
    from kernel.http.context import Context
    from kernel.http.routes import Access, RouteTable
    from kernel.jobs.declarations import JobRef
    from kernel.platform import Platform
    from kernel.plugin_sources import PluginSource
    from kernel.resource_keys import ResourceKey
    from kernel.resources import Resource
    from kernel.settings import Settings
    from kernel.start_guards import StartGuard
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
def register_services() -> Sequence[Service]:
    """Services with their own root and OpenAPI document, which the gateway mounts under `/v1`.

    A service can run in the gateway's process or on another machine (`PLATFORM_SERVICE_URLS`).
    """


@hookspec.declaration
def register_stores() -> Sequence[StoreOffer[Any]]:
    """Stores that the plugin brings, for searching vectors, keeping files or counting requests.

    `PLATFORM_VECTOR_STORE`, `PLATFORM_BLOB_STORE` and `PLATFORM_CACHE_STORE` choose one by name. Only that
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
def register_plugin_sources() -> Sequence[ResourceKey[PluginSource]]:
    """Sources of plugins that are documents rather than code, such as manifests.

    Each is a resource that the plugin opens (`register_resources`), named by its key. A process that does not
    open it has no plugins from that source. While the platform runs, a source is asked for its plugins and
    their actions, which the `DIRECTORY` lists next to those made of code, and to install or remove one. Names
    of Python plugins are taken (``platform.resource(DIRECTORY).taken_names()``). A source that raises an
    error is left out of that answer.
    """


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

    Asked for every request, including those for public routes; only the sessions that the kernel has accepted
    are remembered, so cache what is slow. The kernel's own answer (bearer JWT, service token) comes last, so
    a plugin can add another scheme. An implementation that fails in any other way is reported and skipped,
    unless the database or the machine is at fault: then the request fails with 503 or 507. If it took too
    long and nobody else knows the credential, the answer is 503: raise Unauthorized for what is yours.
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


@hookspec.all_now
def token_claims(
    platform: Platform, unit: Unit, account: Account, previous: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """Additional claims for a token of `account` (teams, organizations …), asked for whenever one is issued.

    `previous` are the claims of the token that it replaces, plus those requested in a re-issue (such as an
    organization to switch to); None at sign-in. Claims not returned aren't carried over. Asked inside a unit
    of work: `account` belongs to the caller and is only read.
    """


@hookspec.all(failing="skip", seconds=PROMPTLY)
def sign_in_methods(platform: Platform) -> Sequence[SignInMethod] | None:
    """Ways to sign in besides username and password, shown in ``GET /v1/auth/capabilities``.

    A plugin that is not configured returns none, and its button is hidden.
    """


@hookspec.first(failing="skip", seconds=PROMPTLY)
def find_start_page(ctx: Context) -> web.StreamResponse | None:
    """What a browser gets at the gateway's `/`. Without an answer, a plain page with links to the API's
    documents. Programs get JSON, in which `client` is where a redirect would lead.
    """


@hookspec.first(failing="skip", seconds=PROMPTLY)
def find_client_address(ctx: Context) -> str | None:
    """The address of a web client, as the requesting browser reaches it.

    The gateway's `/` links to it if no start page redirects and `PLATFORM_CLIENT_BASE_URL` is not set.
    """


@hookspec.first_now
def find_disabled_plugins(platform: Platform, session: Session | None) -> Mapping[str, str] | None:
    """The disabled plugins and the reason for each, for platformctl.

    `session` is None where there is no database yet.
    """


@hookspec.first(seconds=PROMPTLY)
def find_memberships(
    platform: Platform, account_ids: Sequence[int]
) -> Mapping[int, Sequence[OrganizationMembership]] | None:
    """The organizations of accounts, by account id, for the list of users."""


@hookspec.first_now
def select_members(platform: Platform, organization_id: int) -> Select[tuple[int]] | None:
    """A query for the ids of an organization's accounts, used as a subquery of the list of users."""


@hookspec.first(seconds=PROMPTLY)
def find_audited_organizations(
    platform: Platform, principal: Principal, organization_id: int | None
) -> Sequence[int] | None:
    """The organizations whose audit entries the caller may read: those that it manages, and all below them.

    With `organization_id`, only that one and those below it; also for a Platform Admin, who can read all.
    """


@hookspec.notification(seconds=300)
def on_event(platform: Platform, event: Event) -> None:
    """Something was committed. A worker delivers durable events at least once, with retries.

    Other events are delivered once, right after the commit, in the process that committed. An error in
    one plugin never stops delivery to the others; an implementation that takes more than five minutes
    fails. Use a job for long work.
    """


@hookspec.all_now
def on_account_event(platform: Platform, unit: Unit, account: Account, change: AccountChange) -> None:
    """An account changes inside `unit`; raise a Conflict to forbid it.

    `promoted` and `demoted` are about the instance role. Runs in the same transaction, after the change. When
    an account is `deleted`, this is the last time that it has its name, e-mail address and subject at the
    identity provider: remove what is stored under these here, and everything else in `on_account_deleted`.
    """


@hookspec.all_now
def hand_over_shared(
    platform: Platform, unit: Unit, account: Account, heir: Scope | None
) -> Sequence[SharedThing] | None:
    """What an account that is being deleted owns and others use. Called inside the unit that deletes it.

    If there is an `heir`, make it the owner of whatever it may own. Return what is left: the deletion is then
    refused, and the error lists it. ``hand_over_owned`` does this for a table of `Owned` rows. What is
    neither returned nor handed over is removed by `on_account_deleted`.
    """


@hookspec.notification(seconds=300)
def on_account_deleted(platform: Platform, account_id: int) -> None:
    """Remove everything that belongs to a deleted account. Its id is never used again.

    Called by a worker, in a durable job, until it succeeds, even if the plugin was disabled or not installed
    at the time; and again on a later night, for anything that a request still running at the time has stored.
    So it must be idempotent; delete large amounts in several units. An implementation that fails, or takes
    more than five minutes, is named in the job and called again; other plugins are not affected. Records that
    must stay, such as orders, keep only the id, not the name.
    """


@hookspec.notification
def on_start(platform: Platform) -> None:
    """Everything is open and the routes are checked; the process is about to serve requests.

    Must finish within `PLATFORM_PLUGIN_START_TIMEOUT`; if it fails, the plugin is taken out of service.
    """
