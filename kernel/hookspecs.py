"""Every hook of the kernel. The docstrings are the reference; `platformctl hooks` prints them.

Conventions: a `register_*` hook is synchronous and returns declarations, once, at start. An `on_*` hook
reports something that happened. A question that wants one answer is `firstresult`; where all must agree it
is not. A hook may return an awaitable, and the caller awaits it. An implementation may take fewer
arguments than its specification.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    import typer
    from aiohttp import web
    from sqlalchemy import Select

    from kernel.actions import Action
    from kernel.auth.external_schemas import SignInMethod
    from kernel.auth.models import Account
    from kernel.auth.ownership import Scope
    from kernel.auth.permissions import Decision, Permission
    from kernel.auth.principals import Principal
    from kernel.db.base import Tables
    from kernel.db.engine import Unit
    from kernel.directory import PluginSource
    from kernel.events import Event
    from kernel.gateway.services import Service
    from kernel.health import HealthCheck
    from kernel.http.context import Context
    from kernel.http.routes import Access, RouteTable
    from kernel.jobs.declarations import Job
    from kernel.platform import Platform
    from kernel.resources import Resource
    from kernel.settings import Settings

PROJECT = "platform"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def register_hookspecs() -> Sequence[object]:
    """Modules or classes with further hook specifications that this plugin brings for others.

    Fires first, before any other hook, so that plugins that load later may implement them.
    """


@hookspec
def register_settings() -> type[Settings] | None:
    """The plugin's settings class, every field typed and described.

    The kernel fills it from the environment and from the plugin's section of `config.yaml`, and hands it
    back as ``platform.settings_of(YourSettings)``. A wrong value refuses this plugin and names the field.
    """


@hookspec
def register_tables() -> Tables | None:
    """The plugin's tables: ``Tables(Base, migrations_folder)``, all named with the plugin's prefix.

    Migrations run in the order of `requires`, each owner in its own version table. A failed migration
    refuses this plugin.
    """


@hookspec
def register_permissions() -> Sequence[Permission]:
    """The permission keys of the plugin, each with a sentence; listed at ``GET /v1/permissions``."""


@hookspec
def register_routes() -> Sequence[RouteTable]:
    """Routes served by the gateway itself, with their full public paths (``/v1/<plugin>/...``).

    A table made with ``RouteTable(..., service=NAME)`` contributes to that service instead, whichever plugin
    offers it: its paths start at the service's root.
    """


@hookspec
def register_services() -> Sequence[Service]:
    """Services with their own root (spec section 1), which the gateway mounts by the table of spec 4.5."""


@hookspec
def register_resources() -> Sequence[Resource[Any]]:
    """What to open at start and to close at shutdown: clients, engines, watchers.

    Each is an async context manager made from the platform; its value is reachable as
    ``platform.resource(KEY)``. Opening is bounded by `PLATFORM_PLUGIN_START_TIMEOUT`; a failure refuses the
    plugin.
    """


@hookspec
def register_health_checks() -> Sequence[HealthCheck]:
    """Checks shown under ``checks`` of ``/health``; an optional one that fails makes it `degraded`."""


@hookspec
def register_commands() -> Sequence[tuple[str, typer.Typer]]:
    """Command groups for ``platformctl <name> …``."""


@hookspec
def register_jobs() -> Sequence[Job[Any]]:
    """Durable jobs that this plugin can run in a worker process. Handlers must be idempotent."""


@hookspec
def register_actions() -> Sequence[Action]:
    """Actions of the plugin: name, parameters as a pydantic model, read-only or not, tier.

    One declaration gives the REST route, the function definition, the OpenAPI tool and the docs.
    """


@hookspec
def register_plugin_sources() -> Sequence[PluginSource]:
    """Where plugins come from that are documents rather than code, such as manifests.

    A source is asked while the platform runs: for its plugins and their actions, which then stand beside
    those made of code in ``platform.directory``, and to install or remove one. Names of code are taken
    (``platform.directory.taken_names()``). A source that raises is left out of that answer.
    """


@hookspec(firstresult=True)
def identify_actor(request: web.Request, authorization: str | None) -> Awaitable[Principal | None] | None:
    """Who sends this request. None means "not my kind of credential"; raise Unauthorized for a bad one.

    Asked for every request, public routes included. The kernel's own answer (bearer JWT, service token)
    comes last, so a plugin may add another scheme. An implementation that fails in another way is reported
    and passed over.
    """


@hookspec
def decide_access(
    ctx: Context, principal: Principal, access: Access, params: dict[str, Any]
) -> Awaitable[Decision | None] | Decision | None:
    """Whether `principal` may use a route with this `access`; all are asked.

    None is no opinion, `Decision.ALLOW` grants, `Decision.DENY` vetoes: one veto is enough, and without a
    grant the answer is no. An implementation that fails is reported and counts as a veto, except on public
    routes.
    """


@hookspec(firstresult=True)
def find_scope(principal: Principal) -> Awaitable[Scope | None] | None:
    """What the caller belongs to right now: teams and organizations whose rows it may read.

    Asked for every signed-in account. Without an answer the token's claims count.
    """


@hookspec
def token_claims(
    unit: Unit, account: Account, previous: Mapping[str, Any] | None
) -> Awaitable[dict[str, Any]] | dict[str, Any] | None:
    """Further claims for the token of `account` (teams, organizations …), asked whenever one is minted.

    `previous` are the claims of the token that it replaces, with those that were asked for in a re-issue (an
    organization to switch into); None at a sign-in. What is not answered is not carried over.
    """


@hookspec
def sign_in_methods() -> Sequence[SignInMethod] | None:
    """Ways to sign in beside username and password, shown in ``GET /v1/auth/capabilities``.

    A plugin that is not configured answers none, and its button is hidden.
    """


@hookspec(firstresult=True)
def find_memberships(
    account_ids: Sequence[int],
) -> Awaitable[Mapping[int, Sequence[Mapping[str, Any]]]] | None:
    """The organizations of accounts, for the list of users.

    By account id a list of ``{id, name, slug, role}``.
    """


@hookspec(firstresult=True)
def select_members(organization_id: int) -> Select[tuple[int]] | None:
    """A query for the ids of the accounts of an organization, to stand inside the list of users."""


@hookspec(firstresult=True)
def find_audited_organizations(
    principal: Principal, organization_id: int | None
) -> Awaitable[Sequence[int]] | None:
    """The organizations whose audit entries the caller may read: those it manages, and all below them.

    With `organization_id` only that one and those below it, also for a Platform Admin, who may read all.
    """


@hookspec
def on_event(platform: Platform, event: Event) -> Awaitable[None] | None:
    """Something was committed. A durable event is delivered by a worker, at least once, with retries.

    Others are delivered in the process that committed, once, right after the commit. One plugin's error
    never stops another's delivery.
    """


@hookspec
def on_account_event(unit: Unit, account: Account, change: str) -> Awaitable[None] | None:
    """An account changes inside `unit`; raise a Conflict to forbid it.

    `change` is one of `created`, `signed_in`, `refreshed`, `activated`, `deactivated`, `promoted`,
    `demoted` (the instance role), `password_reset`, `linked`, `platform_admin_granted`,
    `platform_admin_revoked`. Runs in the transaction of the change, after it.
    """


@hookspec
def on_start(platform: Platform) -> Awaitable[None] | None:
    """Everything is open and the routes are checked; the process is about to serve."""
