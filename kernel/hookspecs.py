"""Every hook that the kernel calls. The docstrings are the reference; `platformctl hooks` prints them.

A `register_…` hook returns declarations, once, at start, and is a plain function. An `on_…` hook reports
something that happened. The others are questions. An implementation may take fewer arguments than its
specification, and may be async unless the specification says ``_now`` or is a declaration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kernel.auth.permissions import Decision
from kernel.hook_types import hookspec

if TYPE_CHECKING:
    import typer
    from aiohttp import web
    from sqlalchemy import Select

    from kernel.actions import Action
    from kernel.auth.external_schemas import SignInMethod
    from kernel.auth.models import Account, AccountChange
    from kernel.auth.ownership import Scope
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
    from kernel.stores.offers import StoreOffer


@hookspec.declaration
def register_hookspecs() -> Sequence[object]:
    """Further hooks that this plugin brings for others: modules of specifications, or specifications.

    Asked first, before any other hook, so that plugins that load later may implement them.
    """


@hookspec.declaration
def register_settings() -> type[Settings] | None:
    """The plugin's settings class, every field typed and described.

    The kernel fills it from the environment and from the plugin's section of `config.yaml`, and hands it
    back as ``platform.settings_of(YourSettings)``. A wrong value refuses this plugin and names the field.
    """


@hookspec.declaration
def register_tables() -> Tables | None:
    """The plugin's tables: ``Tables(Base, migrations_folder)``, all named with the plugin's prefix.

    Migrations run in the order of `requires`, each owner in its own version table. A failed migration
    refuses this plugin.
    """


@hookspec.declaration
def register_permissions() -> Sequence[Permission]:
    """The permission keys of the plugin, each with a sentence; listed at ``GET /v1/permissions``."""


@hookspec.declaration
def register_routes() -> Sequence[RouteTable]:
    """Routes served by the gateway itself, with their full public paths (``/v1/<plugin>/...``).

    A table made with ``RouteTable(..., service=NAME)`` contributes to that service instead, whichever plugin
    offers it: its paths start at the service's root.
    """


@hookspec.declaration
def register_services() -> Sequence[Service]:
    """Services with their own root and OpenAPI document, which the gateway mounts under `/v1`.

    A service can run in the gateway's process or on another machine (`PLATFORM_SERVICE_URLS`).
    """


@hookspec.declaration
def register_stores() -> Sequence[StoreOffer[Any]]:
    """Stores that the plugin brings: where vectors are searched, files are kept or requests are counted.

    `PLATFORM_VECTOR_STORE`, `PLATFORM_BLOB_STORE` and `PLATFORM_CACHE_STORE` choose one by its name. Only
    that one is opened, after the migrations, within `PLATFORM_PLUGIN_START_TIMEOUT`. A chosen store that is
    missing or can't be opened stops the start.
    """


@hookspec.declaration
def register_resources() -> Sequence[Resource[Any]]:
    """What to open at start and to close at shutdown: clients, engines, watchers.

    Each is an async context manager made from the platform; its value is reachable as
    ``platform.resource(KEY)``. Opening is bounded by `PLATFORM_PLUGIN_START_TIMEOUT`; a failure refuses the
    plugin.
    """


@hookspec.declaration
def register_health_checks() -> Sequence[HealthCheck]:
    """Checks shown under ``checks`` of ``/health``; an optional one that fails makes it `degraded`."""


@hookspec.declaration
def register_commands() -> Sequence[tuple[str, typer.Typer]]:
    """Command groups for ``platformctl <name> …``."""


@hookspec.declaration
def register_jobs() -> Sequence[JobRef]:
    """Durable jobs that this plugin can run in a worker process. Handlers must be idempotent."""


@hookspec.declaration
def register_events() -> Sequence[type[Event]]:
    """The durable events that the plugin emits, so that a stored one finds its class again.

    Names begin with the plugin's name. Two events of one name refuse the plugin that came later.
    """


@hookspec.declaration
def register_actions() -> Sequence[Action]:
    """Actions of the plugin: name, parameters as a pydantic model, access, what a call does, tier.

    One declaration gives the REST route, the function definition, the OpenAPI tool and the docs. Each names
    its access; one that is public must be read-only. A declaration that does not hold refuses the plugin.
    """


@hookspec.declaration
def register_plugin_sources() -> Sequence[ResourceKey[PluginSource]]:
    """Where plugins come from that are documents rather than code, such as manifests.

    Each is a resource that the plugin opens (`register_resources`), named by its key; a process that does not
    open it has no plugins of that source. A source is asked while the platform runs: for its plugins and
    their actions, which then stand beside those made of code in the `DIRECTORY`, and to install or remove
    one. Names of code are taken (``platform.resource(DIRECTORY).taken_names()``). A source that raises is
    left out of that answer.
    """


@hookspec.first(failing="skip")
def identify_actor(platform: Platform, request: web.Request, authorization: str | None) -> Principal | None:
    """Who sends this request. None means "not my kind of credential"; raise Unauthorized for a bad one.

    Asked for every request, public routes included. The kernel's own answer (bearer JWT, service token)
    comes last, so a plugin may add another scheme; a header that it accepted is not asked about again while
    the account stays as it is. An implementation that fails in another way is reported and passed over.
    """


def _unheard(
    ctx: Context, principal: Principal, access: Access, params: Mapping[str, int | str]
) -> Decision | None:
    """A judge that fails can't be taken for one that agrees; but what is open to anyone stays open."""
    return None if access.kind == "public" else Decision.DENY


@hookspec.all(failing=_unheard)
def decide_access(
    ctx: Context, principal: Principal, access: Access, params: Mapping[str, int | str]
) -> Decision | None:
    """Whether `principal` may use a route with this `access`; all are asked.

    `params` are the parameters of the route's path, as the handler gets them.
    None is no opinion, `Decision.ALLOW` grants, `Decision.DENY` vetoes: one veto is enough, and without a
    grant the answer is no. An implementation that fails is reported and counts as a veto, except on public
    routes.
    """


@hookspec.first
def find_scope(platform: Platform, principal: Principal) -> Scope | None:
    """What the caller belongs to right now: teams and organizations whose rows it may read.

    Asked for every signed-in account. Without an answer the caller sees its own rows and shared ones.
    """


@hookspec.all_now
def token_claims(
    platform: Platform, unit: Unit, account: Account, previous: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """Further claims for the token of `account` (teams, organizations …), asked whenever one is issued.

    `previous` are the claims of the token that it replaces, with those that were asked for in a re-issue (an
    organization to switch into); None at a sign-in. What is not answered is not carried over. Asked inside a
    unit of work: `account` belongs to the caller and is only read.
    """


@hookspec.all(failing="skip")
def sign_in_methods(platform: Platform) -> Sequence[SignInMethod] | None:
    """Ways to sign in beside username and password, shown in ``GET /v1/auth/capabilities``.

    A plugin that is not configured answers none, and its button is hidden.
    """


@hookspec.first
def find_memberships(
    platform: Platform, account_ids: Sequence[int]
) -> Mapping[int, Sequence[OrganizationMembership]] | None:
    """The organizations of accounts, by account id, for the list of users."""


@hookspec.first_now
def select_members(platform: Platform, organization_id: int) -> Select[tuple[int]] | None:
    """A query for the ids of the accounts of an organization, used inside the list of users."""


@hookspec.first
def find_audited_organizations(
    platform: Platform, principal: Principal, organization_id: int | None
) -> Sequence[int] | None:
    """The organizations whose audit entries the caller may read: those it manages, and all below them.

    With `organization_id` only that one and those below it, also for a Platform Admin, who may read all.
    """


@hookspec.notification
def on_event(platform: Platform, event: Event) -> None:
    """Something was committed. A durable event is delivered by a worker, at least once, with retries.

    Others are delivered in the process that committed, once, right after the commit. One plugin's error
    never stops another's delivery.
    """


@hookspec.all_now
def on_account_event(platform: Platform, unit: Unit, account: Account, change: AccountChange) -> None:
    """An account changes inside `unit`; raise a Conflict to forbid it.

    `promoted` and `demoted` tell of the instance role. Runs in the transaction of the change, after it.
    """


@hookspec.notification
def on_start(platform: Platform) -> None:
    """Everything is open and the routes are checked; the process is about to serve.

    Bounded by `PLATFORM_PLUGIN_START_TIMEOUT`; a failure takes the plugin out of service.
    """
