"""Assembles a platform, from reading its settings to calling `on_start`.

`open_platform` is the boot order. Each part gets what it needs when it is made. `kernel.platform.Platform`,
which plugins see, is made last, when all its attributes are final.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial

from sqlalchemy.exc import SQLAlchemyError

from kernel.auth.identity import IDENTITY, Identity
from kernel.auth.permissions import Permission
from kernel.auth.secrets import SecretStore
from kernel.auth.states import ACCOUNT_STATES, AccountStates
from kernel.auth.states import TOPIC as ACCOUNT_TOPIC
from kernel.auth.tokens import TOKENS, Tokens
from kernel.db.engine import Database
from kernel.db.startup import SCHEMA, Schema, unusable
from kernel.db.wakeups import wakeups_for
from kernel.errors import StartupError
from kernel.events.events import EVENTS, Event, EventCatalog
from kernel.events.notices import Notices
from kernel.events.outbox import DELIVER_EVENT, PlatformOutbox
from kernel.gateway.health import HEALTH_REPORTS, HealthReports
from kernel.gateway.services import REMOTE_SERVICES, Service, in_order, installed_services
from kernel.hooks import hookspecs
from kernel.hooks.calling import Hooks
from kernel.hooks.manager import HookManager
from kernel.http.access_control import ACCESS_CONTROL, AccessControl
from kernel.http.middlewares import ACCESS_LOG, AccessLog
from kernel.http.rate_limits import RATE_LIMITS, REQUEST_LIMITS, RateLimits, RequestLimits
from kernel.http.streams import OPEN_STREAMS, OpenStreams
from kernel.jobs.cancellation import TELL_OF_CANCEL
from kernel.libs.outgoing.client import OUTGOING, Outgoing
from kernel.observe.metrics import Metrics
from kernel.observe.tracing import TRACING, Tracing
from kernel.platform import PLATFORM, Platform, Role
from kernel.plugins.collecting import Collector
from kernel.plugins.declarations import DECLARATIONS, Declarations
from kernel.plugins.extras import require
from kernel.plugins.loading import Candidate, PluginHost, installed, problems_at_last_start
from kernel.plugins.offers import OFFERS, Offers
from kernel.plugins.plugin_settings import PLUGIN_SETTINGS, PluginSettings
from kernel.plugins.resource_keys import Resources
from kernel.plugins.starting import Starter
from kernel.plugins.states import PLUGIN_STATES, PluginStates
from kernel.plugins.watchdog import OnStuck, Quarantine, StartWatch, restart_without
from kernel.process.home_lock import home_held, make_home
from kernel.process.housekeeping import HOUSEKEEP
from kernel.process.start_guards import Opening, StartGuards
from kernel.settings.checks import split_list
from kernel.settings.loading import KernelSettings, SettingsLoader
from kernel.stores.blobs import HeldBlobs
from kernel.stores.disk import DiskSpace, Scratch, folders_written
from kernel.stores.offers import OfferedStores, StoreNeeds
from kernel.stores.opening import STORE_OPENING, StoreOpening, Stores, own_stores

OWN_JOBS = (DELIVER_EVENT, TELL_OF_CANCEL, HOUSEKEEP)


@asynccontextmanager
async def open_platform(
    loader: SettingsLoader,
    *,
    role: Role = "tool",
    candidates: Sequence[Candidate] | None = None,
    services: Mapping[str, Service] | None = None,
    apply_migrations: bool | None = None,
    restart: bool = False,
    supervised: bool = False,
) -> AsyncIterator[Platform]:
    """Settings, plugins, migrations, declarations, resources, in this order; closed in reverse.

    `candidates` and `services` are those of the installed packages unless they are given. A ``tool`` opens no
    resources of plugins. With `restart`, a plugin that blocks the event loop while it
    starts is quarantined and the process replaced by a new one: only for a process that does nothing else. A
    `supervised` process doesn't repeat what its parent has logged about settings and plugins. Raises
    StartupError when storage or authentication fails.
    """
    candidates = installed() if candidates is None else candidates
    settings = _read_settings(loader)
    make_home(settings.home)
    quarantine = Quarantine(settings.home)
    apply = settings.migrate_on_start if apply_migrations is None else apply_migrations
    earlier_problems = problems_at_last_start(settings.home) if supervised else frozenset()
    plugins = _load_plugins(loader, settings, candidates, quarantine, earlier_problems, services)
    async with AsyncExitStack() as stack:
        storage = _connect(settings, plugins, stack, serving=role != "tool", migrating=apply)
        guards = StartGuards(plugins.declarations.of(hookspecs.register_start_guards), plugins.states)
        plugins.settings.load(plugins.declarations.of(hookspecs.register_settings))
        if not supervised:
            plugins.settings.warn(settings.plugins_disabled)
        schema = Schema(storage.database, plugins.declarations, plugins.states, strict=role != "tool")
        if role != "tool":
            with _storage_errors(storage.database):
                await stack.enter_async_context(home_held(settings.home, storage.database))
        opening_stores = StoreOpening(storage.needs, _offered_stores(plugins), stack)
        storage.resources.add(STORE_OPENING, opening_stores)
        # Commands that load no plugins don't need the store that the settings name, and don't have it.
        storeless = role == "tool" and not candidates
        blobs = None if storeless else await opening_stores.open_early_blobs()
        opening = Opening(storage.needs, schema.owners, blobs)
        schema.before_migrations = partial(guards.before_migrations, opening)
        if role != "tool":
            with _storage_errors(storage.database):
                await guards.enter_service(opening, stack)
        await schema.migrate(apply=apply)
        if role != "tool":
            schema.refuse_pending()
        if storeless:
            stores = own_stores(storage.needs)
        else:
            stores = await opening_stores.open(storage.resources, blobs=blobs)
        if role != "tool" and isinstance(stores.blobs, HeldBlobs):
            with _storage_errors(storage.database):
                await stores.blobs.settle()
        platform = _assemble(role, plugins, storage, stores, schema, stack)
        plugins.collector.collect(OWN_JOBS)
        plugins.collector.check_routes()
        if role != "tool":
            await storage.notices.start(storage.database)
            on_stuck = _restart(quarantine, candidates) if restart else None
            watch = StartWatch(settings.plugin_start_timeout * 1.5 + 1, on_stuck)
            starter = Starter(platform, plugins.states, stack, watch)
            await starter.open_resources(plugins.declarations, platform.resources)
            _check_remote_names(platform)
            await starter.start_plugins()
        yield platform


@asynccontextmanager
async def declared_platform(
    loader: SettingsLoader, candidates: Sequence[Candidate] | None = None
) -> AsyncIterator[Platform]:
    """The plugins' declarations, with nothing opened and no database touched: for commands that explain."""
    settings = _read_settings(loader)
    candidates = installed() if candidates is None else candidates
    plugins = _load_plugins(loader, settings, candidates, Quarantine(settings.home))
    async with AsyncExitStack() as stack:
        storage = _connect(settings, plugins, stack)
        plugins.settings.load(plugins.declarations.of(hookspecs.register_settings))
        schema = Schema(storage.database, plugins.declarations, plugins.states, strict=False)
        schema.owners()
        storage.resources.add(STORE_OPENING, StoreOpening(storage.needs, _offered_stores(plugins), stack))
        platform = _assemble("tool", plugins, storage, own_stores(storage.needs), schema, stack)
        plugins.collector.collect(OWN_JOBS)
        yield platform


async def upgrade(platform: Platform) -> None:
    """Apply the pending migrations and let stores prepare the database. Raises StartupError."""
    await platform.resource(SCHEMA).migrate(apply=True)
    await platform.resource(STORE_OPENING).prepare()


def _read_settings(loader: SettingsLoader) -> KernelSettings:
    settings = loader.load("kernel", KernelSettings)
    if not settings.sqlalchemy_url.startswith("sqlite"):
        require("DATABASE_URL", "postgres", "asyncpg")
    if settings.redis_url is not None:
        require("REDIS_URL", "redis", "redis")
    return settings


def _check_remote_names(platform: Platform) -> None:
    """Services on other machines must be services that plugins or their packages declare."""
    names = [service.name for service in in_order(platform.resource(OFFERS).all_services.values())]
    remote = platform.resources.find(REMOTE_SERVICES)
    for name in remote.names if remote is not None else ():
        if name not in names:
            raise StartupError(
                f"PLATFORM_SERVICE_URLS: '{name}' is not a service; the services are: {', '.join(names)}"
            )


@dataclass(frozen=True)
class _Plugins:
    """The loaded plugins, with what calls and watches them."""

    host: PluginHost
    states: PluginStates
    hooks: Hooks
    declarations: Declarations
    settings: PluginSettings
    permissions: dict[str, Permission]
    offers: Offers
    events: EventCatalog
    collector: Collector


def _load_plugins(
    loader: SettingsLoader,
    settings: KernelSettings,
    candidates: Sequence[Candidate],
    quarantine: Quarantine,
    earlier_problems: frozenset[tuple[str, str]] = frozenset(),
    services: Mapping[str, Service] | None = None,
) -> _Plugins:
    manager = HookManager(hookspecs)
    disabled = split_list(settings.plugins_disabled)
    host = PluginHost(manager, settings.plugin_start_timeout, disabled, quarantine.keep_out, earlier_problems)
    host.load(candidates)
    states, permissions = PluginStates(host), dict[str, Permission]()
    offers = Offers(known_services=installed_services() if services is None else dict(services))
    events = EventCatalog()
    states.insist_on_essential()
    hooks = Hooks(manager, states.hook_failed, states.declaration_failed, settings.plugin_start_timeout)
    states.listen(lambda _failed: hooks.silence(states.switched_off))
    states.listen(offers.withdraw)
    declarations = Declarations(states, settings.plugin_start_timeout)
    return _Plugins(
        host,
        states,
        hooks,
        declarations,
        PluginSettings(loader, states),
        permissions,
        offers,
        events,
        Collector(declarations, states, permissions, offers, events),
    )


@dataclass(frozen=True)
class _Storage:
    """What stores and shares state. Nothing here has queried the database yet."""

    database: Database
    notices: Notices
    needs: StoreNeeds
    resources: Resources


def _connect(
    settings: KernelSettings,
    plugins: _Plugins,
    stack: AsyncExitStack,
    *,
    serving: bool = False,
    migrating: bool = False,
) -> _Storage:
    notices = Notices(wakeups_for(settings.sqlalchemy_url, settings.home / "run"))
    resources = Resources()
    has_listeners = partial(plugins.hooks.implementations, hookspecs.on_event)
    tell = partial(_publish, resources)
    outbox = PlatformOutbox(notices, tell, has_listeners, plugins.events)
    database = Database(settings.sqlalchemy_url, outbox, pool_size=settings.database_pool_size)
    stack.push_async_callback(database.close)
    stack.push_async_callback(notices.stop)
    disk = DiskSpace(folders_written(settings.home, settings.sqlalchemy_url), settings.min_free_disk_mb)
    needs = StoreNeeds(
        settings, database, SecretStore(settings.home), disk, plugins.settings, serving, migrating
    )
    return _Storage(database, notices, needs, resources)


async def _publish(resources: Resources, events: Sequence[Event]) -> None:
    if not events:  # always so while stores are being opened, before there is a platform
        return
    platform = resources.get(PLATFORM)
    for event in events:
        await platform.hooks.tell(hookspecs.on_event, platform=platform, event=event)


@contextmanager
def _storage_errors(database: Database) -> Iterator[None]:
    """Errors of the database or the disk as a StartupError with the remedy."""
    try:
        yield
    except (SQLAlchemyError, OSError) as error:
        raise unusable(error, database.url) from error


def _offered_stores(plugins: _Plugins) -> OfferedStores:
    offered = OfferedStores()
    for plugin, offers in plugins.declarations.of(hookspecs.register_stores):
        problem = offered.add(plugin, offers)
        if problem is not None:
            plugins.states.fail(plugin, problem)
    return offered


def _assemble(
    role: Role,
    plugins: _Plugins,
    storage: _Storage,
    stores: Stores,
    schema: Schema,
    stack: AsyncExitStack,
) -> Platform:
    """The platform object, with the kernel's own parts as resources."""
    needs, settings = storage.needs, storage.needs.settings
    platform = Platform(
        role=role,
        settings=settings,
        secrets=needs.secrets,
        metrics=Metrics(),
        database=storage.database,
        notices=storage.notices,
        hooks=plugins.hooks,
        permissions=plugins.permissions,
        disk=needs.disk,
        blobs=stores.blobs,
        cache=stores.cache,
        scratch=Scratch(settings.home / "tmp"),
        resources=storage.resources,
    )
    resources = platform.resources
    resources.add(PLATFORM, platform)
    resources.add(TRACING, Tracing())
    needs.disk.offer_figures(platform.metrics)
    resources.add(PLUGIN_STATES, plugins.states)
    resources.add(PLUGIN_SETTINGS, plugins.settings)
    resources.add(DECLARATIONS, plugins.declarations)
    resources.add(OFFERS, plugins.offers)
    resources.add(EVENTS, plugins.events)
    resources.add(SCHEMA, schema)
    resources.add(HEALTH_REPORTS, HealthReports(platform))
    _add_identity(platform)
    _add_http(platform, plugins, stack)
    return platform


def _add_identity(platform: Platform) -> None:
    settings, database, add = platform.settings, platform.database, platform.resources.add
    tokens = add(TOKENS, Tokens(settings, platform.secrets))
    if platform.role != "tool":  # a tool makes no secrets: its user may not be the home's owner
        tokens.prepare()
    states = add(ACCOUNT_STATES, AccountStates(database, settings.account_cache_seconds))
    platform.notices.listen(ACCOUNT_TOPIC, states.invalidate)
    add(IDENTITY, Identity(settings, tokens, states, platform.permissions))


def _add_http(platform: Platform, plugins: _Plugins, stack: AsyncExitStack) -> None:
    """Add what every request passes through, including the kernel's `identify_actor` and `decide_access`."""
    settings, hooks, add = platform.settings, platform.hooks, platform.resources.add
    identity = platform.resource(IDENTITY)
    plugins.host.manager.register(identity, identity.name)
    hooks.freeze()
    add(ACCESS_CONTROL, AccessControl(hooks, identity))
    limits = add(RATE_LIMITS, RateLimits(platform.cache, enabled=settings.rate_limit_enabled))
    add(REQUEST_LIMITS, RequestLimits(limits, settings))
    tracing = platform.resource(TRACING)
    add(OUTGOING, Outgoing(split_list(settings.outgoing_allowed), platform.metrics, tracing))
    states = platform.resource(ACCOUNT_STATES)
    streams = add(OPEN_STREAMS, OpenStreams(states, settings.account_streams))
    platform.notices.listen(ACCOUNT_TOPIC, streams.changed)
    stack.push_async_callback(streams.close)
    access_log = add(ACCESS_LOG, AccessLog())
    stack.callback(access_log.flush)


def _restart(quarantine: Quarantine, candidates: Sequence[Candidate]) -> OnStuck:
    versions = {candidate.name: candidate.version for candidate in candidates}
    return partial(restart_without, quarantine, versions.get)
