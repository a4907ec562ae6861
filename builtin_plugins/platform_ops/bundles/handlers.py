"""Routes of bundles (spec 4.8, wire-facts 9.2)."""

from __future__ import annotations

from pydantic import BaseModel, Field

from builtin_plugins.platform_ops.bundles import switching
from builtin_plugins.platform_ops.bundles.membership import CORE, BundleSwitches
from builtin_plugins.platform_ops.bundles.switching import BundleNotFound, CoreBundle, Fleet
from builtin_plugins.platform_ops.containers.engine import ENGINE_ERRORS
from builtin_plugins.tools.api import Directory
from kernel.sdk import ADMIN, PUBLIC, Context, Platform, RouteTable
from kernel.sdk.telemetry import is_failure, run_check

routes = RouteTable("Bundles")


class BundleService(BaseModel):
    """A service that a bundle claims."""

    name: str
    active: bool = Field(description="Whether an enabled bundle claims it.")
    claimants: list[str] = Field(description="The enabled bundles that claim it.")
    image: str | None = Field(description="Its pinned image; null for what is part of the platform.")


class BundleOut(BaseModel):
    """A bundle and its desired state."""

    name: str
    core: bool
    enabled: bool
    claims: list[str]
    services: list[BundleService]


class Bundles(BaseModel):
    """All bundles."""

    bundles: list[BundleOut]
    orphaned: list[str] = Field(description="Services that only disabled bundles claim.")
    count: int


class ServiceReady(BaseModel):
    """The current state of a service."""

    name: str
    running: bool
    healthy: bool


class BundleReady(BaseModel):
    """Whether all services of a bundle run and are healthy."""

    name: str
    ready: bool
    services: list[ServiceReady]


class Readiness(BaseModel):
    """The current state of all bundles, regardless of their desired state."""

    bundles: list[BundleReady]
    count: int


class Enabled(BaseModel):
    """What enabling a bundle did."""

    bundle: str
    enabled: bool
    started: list[str]
    already_running: list[str]
    pending_create: list[str] = Field(description="Services with neither a container nor a plugin here.")
    errors: list[str]


class Disabled(BaseModel):
    """What disabling a bundle did; services that another enabled bundle claims keep running."""

    bundle: str
    enabled: bool
    orphaned: list[str]
    stopped: list[str]
    already_stopped: list[str]
    absent: list[str]
    errors: list[str]


class Reconciled(BaseModel):
    """What was done to bring the services to their desired state."""

    started: list[str]
    already_running: list[str]
    pending_create: list[str]
    stopped: list[str]
    already_stopped: list[str]
    errors: list[str]


@routes.get("/v1/bundles", access=PUBLIC, returns=Bundles, errors=ENGINE_ERRORS)
async def index(ctx: Context) -> Bundles:
    """List the bundles: what each claims, and whether it is enabled."""
    there = await switching.fleet(ctx.platform, now=False)
    switches = await ctx.read(switching.desired_switches, there.claims)
    bundles = [_rendered(name, switches, there) for name in switches.claims]
    return Bundles(bundles=bundles, orphaned=switches.orphaned(), count=len(bundles))


@routes.get("/v1/bundles/ready", access=PUBLIC, returns=Readiness, errors=ENGINE_ERRORS)
async def ready(ctx: Context) -> Readiness:
    """Show which services run and are healthy now."""
    there = await switching.fleet(ctx.platform, now=False)
    names = dict.fromkeys(service for claims in there.claims.values() for service in claims)
    states = {name: await _state(ctx.platform, there, name) for name in names}
    bundles = []
    for name, claims in there.claims.items():
        services = [states[service] for service in claims]
        is_ready = all(service.running and service.healthy for service in services)
        bundles.append(BundleReady(name=name, ready=is_ready, services=services))
    return Readiness(bundles=bundles, count=len(bundles))


@routes.post("/v1/bundles/reconcile", access=ADMIN, returns=Reconciled, errors=ENGINE_ERRORS, long=True)
async def reconcile(ctx: Context) -> Reconciled:
    """Start and stop services so that they match the desired state of the bundles."""
    there = await switching.fleet(ctx.platform, now=True)
    switches = await ctx.read(switching.desired_switches, there.claims)
    active = [name for name in switches.services() if switches.is_active(name)]
    on = await switching.put(ctx.caller, there, active, on=True)
    off = await switching.put(ctx.caller, there, switches.orphaned(), on=False)
    return Reconciled(
        started=on.changed,
        already_running=on.already,
        pending_create=on.absent,
        stopped=off.changed,
        already_stopped=off.already + off.absent,
        errors=on.errors + off.errors,
    )


@routes.post(
    "/v1/bundles/{name}/enable",
    access=ADMIN,
    returns=Enabled,
    errors=(BundleNotFound, *ENGINE_ERRORS),
    long=True,
)
async def enable(ctx: Context, name: str) -> Enabled:
    """Enable a bundle, and the containers or plugins of its services."""
    there = await switching.fleet(ctx.platform, now=True)
    there.check_name(name)
    await switching.want(ctx.caller, name, there.claims, on=True)
    done = await switching.put(ctx.caller, there, there.claims[name], on=True)
    return Enabled(
        bundle=name,
        enabled=True,
        started=done.changed,
        already_running=done.already,
        pending_create=done.absent,
        errors=done.errors,
    )


@routes.post(
    "/v1/bundles/{name}/disable",
    access=ADMIN,
    returns=Disabled,
    errors=(BundleNotFound, CoreBundle, *ENGINE_ERRORS),
    long=True,
)
async def disable(ctx: Context, name: str) -> Disabled:
    """Disable a bundle, and the containers or plugins of services that no other enabled bundle claims."""
    there = await switching.fleet(ctx.platform, now=True)
    there.check_name(name)
    switches = await switching.want(ctx.caller, name, there.claims, on=False)
    orphaned = [service for service in there.claims[name] if not switches.is_active(service)]
    done = await switching.put(ctx.caller, there, orphaned, on=False)
    return Disabled(
        bundle=name,
        enabled=False,
        orphaned=orphaned,
        stopped=done.changed,
        already_stopped=done.already,
        absent=done.absent,
        errors=done.errors,
    )


def _rendered(name: str, switches: BundleSwitches, there: Fleet) -> BundleOut:
    services = [
        BundleService(
            name=service,
            active=switches.is_active(service),
            claimants=switches.claimants(service),
            image=next((one.image for one in there.of(service)), None),
        )
        for service in switches.claims[name]
    ]
    return BundleOut(
        name=name,
        core=name == CORE,
        enabled=switches.is_enabled(name),
        claims=list(switches.claims[name]),
        services=services,
    )


async def _state(platform: Platform, there: Fleet, service: str) -> ServiceReady:
    if containers := there.of(service):
        running = any(one.running for one in containers)
        return ServiceReady(name=service, running=running, healthy=any(one.healthy for one in containers))
    if not switching.runs(platform, service):
        return ServiceReady(name=service, running=False, healthy=False)
    plugin = switching.plugin_of(platform, service)
    checks = Directory(platform).health_checks(plugin) if plugin is not None else []
    results = [await run_check(platform, check) for check in checks if check.critical]
    return ServiceReady(name=service, running=True, healthy=not any(map(is_failure, results)))
