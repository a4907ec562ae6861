"""Assembles a platform, from reading its settings to calling `on_start`.

`open_platform` is the boot order. Each part gets what it needs when it is made. `kernel.platform.Platform`,
which plugins see, is made last, when all its attributes are final.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from sqlalchemy.exc import SQLAlchemyError

from kernel import contracts, hookspecs
from kernel.auth.accounts import ACCOUNTS, Accounts
from kernel.auth.administration import ADMINISTRATION, Administration
from kernel.auth.attempts import ATTEMPTS, Attempts
from kernel.auth.erasure import FINISH_REMOVALS, REMOVE_ACCOUNT
from kernel.auth.identity import IDENTITY, Identity
from kernel.auth.password_resets import PASSWORD_RESETS, SEND_RESET, PasswordResets
from kernel.auth.passwords import PASSWORDS, Passwords
from kernel.auth.permissions import Permission
from kernel.auth.platform_admins import PLATFORM_ADMINS, PlatformAdmins
from kernel.auth.setup_codes import SETUP_CODES, SetupCodes
from kernel.auth.states import ACCOUNT_STATES, AccountStates
from kernel.auth.states import TOPIC as ACCOUNT_TOPIC
from kernel.auth.tokens import TOKENS, Tokens
from kernel.collecting import Collector
from kernel.db.engine import Database
from kernel.db.startup import SCHEMA, Schema, unusable
from kernel.db.wakeups import wakeups_for
from kernel.declarations import DECLARATIONS, Declarations
from kernel.directory import DIRECTORY, Directory
from kernel.errors import StartupError
from kernel.events import EVENTS, Event, EventCatalog
from kernel.gateway.proxy import PROXY, Proxy
from kernel.gateway.services import SLOTS
from kernel.home_lock import home_held, make_home
from kernel.hook_manager import HookManager
from kernel.hooks import Hooks
from kernel.housekeeping import HOUSEKEEP
from kernel.http.access_control import ACCESS_CONTROL, AccessControl
from kernel.http.access_log import ACCESS_LOG, AccessLog
from kernel.http.identification import IDENTIFICATION, Identification
from kernel.http.request_limits import REQUEST_LIMITS, RequestLimits
from kernel.http.streams import OPEN_STREAMS, OpenStreams
from kernel.jobs.cancelling import TELL_OF_CANCEL
from kernel.jobs.events import DELIVER_EVENT
from kernel.jobs.figures import offer_figures
from kernel.jobs.gathering import CARRY
from kernel.jobs.queue import JOB_QUEUE, JobQueue
from kernel.jobs.runner import JOB_RUNNER, JobRunner
from kernel.mail import Mail
from kernel.metrics import Metrics
from kernel.notices import Notices
from kernel.offers import OFFERS, Offers
from kernel.outbox import PlatformOutbox
from kernel.outgoing.client import OUTGOING, Outgoing
from kernel.owner_secrets.keys import KeyRing
from kernel.owner_secrets.store import OWNER_SECRETS, OwnerSecrets
from kernel.platform import PLATFORM, Platform, Role
from kernel.plugin_settings import PLUGIN_SETTINGS, PluginSettings
from kernel.plugin_states import PLUGIN_STATES, PluginStates
from kernel.plugins import Candidate, PluginHost, installed, told_at_start
from kernel.rate_limits import RATE_LIMITS, RateLimits
from kernel.resource_keys import Resources
from kernel.secrets import SecretStore
from kernel.settings import KernelSettings, SettingsLoader
from kernel.settings_checks import split_list
from kernel.start_guards import Opening, StartGuards
from kernel.starting import Starter
from kernel.stores.disk import DiskSpace, folders_written
from kernel.stores.held import HeldBlobs
from kernel.stores.offers import OfferedStores, StoreNeeds
from kernel.stores.opening import Stores, open_early_blobs, open_stores, own_stores, prepare_own_vectors
from kernel.stores.scratch import Scratch
from kernel.tools.catalog import TOOLS, Tools
from kernel.tracing import TRACING, Tracing
from kernel.watchdog import OnStuck, Quarantine, StartWatch, restart_without

OWN_JOBS = (CARRY, DELIVER_EVENT, SEND_RESET, TELL_OF_CANCEL, HOUSEKEEP, REMOVE_ACCOUNT, FINISH_REMOVALS)


@asynccontextmanager
async def open_platform(
    loader: SettingsLoader,
    *,
    role: Role = "tool",
    candidates: Sequence[Candidate] | None = None,
    apply_migrations: bool | None = None,
    restart: bool = False,
    supervised: bool = False,
) -> AsyncIterator[Platform]:
    """Settings, plugins, migrations, declarations, resources, in this order; closed in reverse.

    A ``tool`` opens no resources of plugins. With `restart`, a plugin that blocks the event loop while it
    starts is quarantined and the process replaced by a new one: only for a process that does nothing else. A
    `supervised` process doesn't repeat what its parent has logged about settings and plugins. Raises
    StartupError when storage or authentication fails.
    """
    candidates = installed() if candidates is None else candidates
    settings = _read_settings(loader)
    make_home(settings.home)
    quarantine = Quarantine(settings.home)
    apply = settings.migrate_on_start if apply_migrations is None else apply_migrations
    told = told_at_start(settings.home) if supervised else frozenset()
    plugins = _load_plugins(loader, settings, candidates, quarantine, told)
    async with AsyncExitStack() as stack:
        storage = _connect(settings, plugins, stack)
        guards = StartGuards(plugins.declarations.of(hookspecs.register_start_guards), plugins.states)
        plugins.settings.load(plugins.declarations.of(hookspecs.register_settings))
        if not supervised:
            plugins.settings.warn(settings.plugins_disabled)
        schema = Schema(storage.database, plugins.declarations, plugins.states, strict=role != "tool")
        if role != "tool":
            await _hold_home(storage, stack)
        offered = _offered_stores(plugins)
        # Commands that load no plugins don't need the store that the settings name, and don't have it.
        storeless = role == "tool" and not candidates
        blobs = None if storeless else await open_early_blobs(storage.needs, offered, stack)
        opening = Opening(storage.needs, schema.owners, blobs)
        schema.before_migrations = partial(guards.before_migrations, opening)
        if role != "tool":
            await _enter_service(opening, guards, stack)
        await schema.migrate(apply=apply)
        if role != "tool":
            schema.refuse_pending()
        if storeless:
            stores = own_stores(storage.needs)
        else:
            stores = await open_stores(
                storage.needs, offered, stack, blobs=blobs, apply=apply, serving=role != "tool"
            )
        if role != "tool" and isinstance(stores.blobs, HeldBlobs):
            await _settle(stores.blobs, storage.database.url)
        platform = _assemble(role, plugins, storage, stores, schema, stack)
        plugins.collector.collect(OWN_JOBS)
        plugins.collector.check_routes()
        if role != "tool":
            await storage.notices.start(storage.database)
            on_stuck = _restart(quarantine, candidates) if restart else None
            watch = StartWatch(settings.plugin_start_timeout * 1.5 + 1, on_stuck)
            starter = Starter(platform, plugins.states, stack, watch)
            await starter.open_resources(plugins.declarations, platform.resources)
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
        platform = _assemble("tool", plugins, storage, own_stores(storage.needs), schema, stack)
        plugins.collector.collect(OWN_JOBS)
        yield platform


async def upgrade(platform: Platform) -> None:
    """Apply the pending migrations and prepare the vector store's tables. Raises StartupError."""
    await platform.resource(SCHEMA).migrate(apply=True)
    await prepare_own_vectors(platform.database, platform.settings)


def _read_settings(loader: SettingsLoader) -> KernelSettings:
    settings = loader.load("kernel", KernelSettings)
    known = [slot.name for slot in SLOTS]
    for name in settings.remote_services:
        if name not in known:
            raise StartupError(
                f"PLATFORM_SERVICE_URLS: '{name}' is not a service; the services are: {', '.join(known)}"
            )
    return settings


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
    told: frozenset[tuple[str, str]] = frozenset(),
) -> _Plugins:
    manager = HookManager(hookspecs, contracts)
    disabled = split_list(settings.plugins_disabled)
    host = PluginHost(manager, settings.plugin_start_timeout, disabled, quarantine.keep_out, told)
    host.load(candidates)
    states, offers, permissions = PluginStates(host), Offers(), dict[str, Permission]()
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


def _connect(settings: KernelSettings, plugins: _Plugins, stack: AsyncExitStack) -> _Storage:
    notices = Notices(wakeups_for(settings.sqlalchemy_url, settings.home / "run"))
    resources = Resources()
    queue = resources.add(JOB_QUEUE, JobQueue(settings.sqlalchemy_url))
    stack.push_async_callback(queue.close)
    has_listeners = partial(plugins.hooks.implementations, hookspecs.on_event)
    tell = partial(_publish, resources)
    outbox = PlatformOutbox(queue, notices, tell, has_listeners, plugins.events)
    database = Database(settings.sqlalchemy_url, outbox, pool_size=settings.database_pool_size)
    stack.push_async_callback(database.close)
    stack.push_async_callback(notices.stop)
    disk = DiskSpace(folders_written(settings.home, settings.sqlalchemy_url), settings.min_free_disk_mb)
    needs = StoreNeeds(settings, database, SecretStore(settings.home), disk, plugins.settings)
    return _Storage(database, notices, needs, resources)


async def _publish(resources: Resources, events: Sequence[Event]) -> None:
    if not events:  # always so while stores are being opened, before there is a platform
        return
    platform = resources.get(PLATFORM)
    for event in events:
        await platform.hooks.tell(hookspecs.on_event, platform=platform, event=event)


async def _hold_home(storage: _Storage, stack: AsyncExitStack) -> None:
    try:
        await stack.enter_async_context(home_held(storage.needs.settings.home, storage.database))
    except (SQLAlchemyError, OSError) as error:
        raise unusable(error, storage.database.url) from error


async def _settle(blobs: HeldBlobs, url: str) -> None:
    try:
        await blobs.settle()
    except (SQLAlchemyError, OSError) as error:
        raise unusable(error, url) from error


async def _enter_service(opening: Opening, guards: StartGuards, stack: AsyncExitStack) -> None:
    try:
        await guards.enter_service(opening, stack)
    except (SQLAlchemyError, OSError) as error:
        raise unusable(error, opening.needs.database.url) from error


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
        vectors=stores.vectors,
        disk=needs.disk,
        blobs=stores.blobs,
        cache=stores.cache,
        scratch=Scratch(settings.home / "tmp"),
        mail=Mail(settings),
        resources=storage.resources,
    )
    resources = platform.resources
    resources.add(PLATFORM, platform)
    resources.add(TRACING, Tracing())
    resources.add(JOB_RUNNER, JobRunner(platform))
    offer_figures(platform)
    resources.add(PLUGIN_STATES, plugins.states)
    resources.add(PLUGIN_SETTINGS, plugins.settings)
    resources.add(DECLARATIONS, plugins.declarations)
    resources.add(OFFERS, plugins.offers)
    resources.add(EVENTS, plugins.events)
    resources.add(DIRECTORY, Directory(plugins.states, plugins.offers, plugins.permissions, resources))
    resources.add(SCHEMA, schema)
    _add_accounts(platform, stack)
    _add_http(platform, plugins, stack)
    return platform


def _add_accounts(platform: Platform, stack: AsyncExitStack) -> None:
    settings, database, add = platform.settings, platform.database, platform.resources.add
    tokens = add(TOKENS, Tokens(settings, platform.secrets))
    ring = KeyRing(platform.secrets)
    if platform.role != "tool":  # a tool makes no secrets: its user may not be the home's owner
        tokens.prepare()
        ring.newest()  # made now: the operator copies the secrets to other machines after the first start
    add(OWNER_SECRETS, OwnerSecrets(ring))
    limits = add(RATE_LIMITS, RateLimits(platform.cache, enabled=settings.rate_limit_enabled))
    add(ATTEMPTS, Attempts(limits))
    passwords = add(PASSWORDS, Passwords(settings.password_memory_mb))
    stack.callback(passwords.close)
    states = add(ACCOUNT_STATES, AccountStates(database, settings.account_cache_seconds))
    platform.notices.listen(ACCOUNT_TOPIC, states.invalidate)
    admins = add(PLATFORM_ADMINS, PlatformAdmins(platform))
    add(SETUP_CODES, SetupCodes(database, admins))
    add(ADMINISTRATION, Administration(platform, passwords))
    add(PASSWORD_RESETS, PasswordResets(platform, passwords=passwords, limits=limits))
    accounts = Accounts(
        platform, passwords=passwords, tokens=tokens, states=states, admins=admins, limits=limits
    )
    add(ACCOUNTS, accounts)
    add(IDENTITY, Identity(settings, tokens, states, platform.permissions))


def _add_http(platform: Platform, plugins: _Plugins, stack: AsyncExitStack) -> None:
    """Add what every request passes through, including the kernel's `identify_actor` and `decide_access`."""
    settings, hooks, add = platform.settings, platform.hooks, platform.resources.add
    identity = platform.resource(IDENTITY)
    plugins.host.manager.register(identity, identity.name)
    hooks.freeze()
    add(IDENTIFICATION, Identification(hooks, identity))
    access = add(ACCESS_CONTROL, AccessControl(hooks, identity))
    limits = platform.resource(RATE_LIMITS)
    add(TOOLS, Tools(platform.resource(DIRECTORY), hooks, access, limits))
    add(REQUEST_LIMITS, RequestLimits(limits, settings))
    tracing = platform.resource(TRACING)
    proxy = add(PROXY, Proxy(settings, tracing))
    stack.push_async_callback(proxy.close)
    add(OUTGOING, Outgoing(split_list(settings.outgoing_allowed), platform.metrics, tracing))
    streams = add(OPEN_STREAMS, OpenStreams(platform.resource(ACCOUNT_STATES)))
    platform.notices.listen(ACCOUNT_TOPIC, streams.changed)
    stack.push_async_callback(streams.close)
    access_log = add(ACCESS_LOG, AccessLog())
    stack.callback(access_log.flush)


def _restart(quarantine: Quarantine, candidates: Sequence[Candidate]) -> OnStuck:
    versions = {candidate.name: candidate.version for candidate in candidates}
    return partial(restart_without, quarantine, versions.get)
