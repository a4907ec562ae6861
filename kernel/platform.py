"""One platform: its settings, plugins, stores and services, put together in the order of `open_platform`.

Everything that lives as long as the process hangs here; nothing lives in modules.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Literal, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from kernel.actions import Action
from kernel.auth.accounts import Accounts
from kernel.auth.administration import Administration
from kernel.auth.attempts import Attempts
from kernel.auth.identity import Identity
from kernel.auth.password_resets import SEND_RESET, PasswordResets
from kernel.auth.passwords import Passwords
from kernel.auth.permissions import Permission
from kernel.auth.platform_admins import PlatformAdmins
from kernel.auth.setup_codes import SetupCodes
from kernel.auth.states import TOPIC as ACCOUNT_TOPIC
from kernel.auth.states import AccountStates
from kernel.auth.tokens import Tokens
from kernel.collecting import check_routes, collect
from kernel.db.engine import Database
from kernel.db.migrate import Owner, Pending
from kernel.db.outages import is_outage
from kernel.db.startup import SchemaStart, reason_of
from kernel.declarations import Undeclared, ask
from kernel.directory import Directory, PluginSource
from kernel.errors import PlatformError, StartupError, Unavailable
from kernel.events import Event
from kernel.gateway.proxy import Proxy
from kernel.gateway.services import SLOTS, Service
from kernel.health import HealthCheck, Unhealthy
from kernel.hooks import Hooks
from kernel.http.access_log import AccessLog
from kernel.http.guard import Guard
from kernel.http.routes import RouteTable
from kernel.http.streams import OpenStreams
from kernel.jobs.declarations import JobRef
from kernel.jobs.events import DELIVER_EVENT
from kernel.jobs.queue import JobQueue
from kernel.mail import Mail
from kernel.metrics import Metrics
from kernel.notices import Notices
from kernel.plugins import Candidate, PluginHost, PluginRecord, installed
from kernel.resources import ResourceKey
from kernel.secrets import SecretStore
from kernel.settings import KernelSettings, Settings, SettingsLoader, split_list
from kernel.starting import Starter
from kernel.stores.blobs import FileBlobs
from kernel.stores.cache import CacheUnavailable, open_cache
from kernel.stores.pgvector_setup import open_vector_store
from kernel.stores.points import SqlVectorStore
from kernel.stores.scratch import Scratch
from kernel.watchdog import OnStuck, Quarantine, StartWatch, restart_without

log = logging.getLogger("platform")

T = TypeVar("T")
S = TypeVar("S", bound=Settings)
Role = Literal["api", "worker", "tool"]


class Platform:
    """The parts of one running platform."""

    def __init__(self, loader: SettingsLoader, candidates: Sequence[Candidate]) -> None:
        self.loader = loader
        self.settings = loader.load("kernel", KernelSettings)
        _check_service_names(self.settings)
        self.role: Role = "tool"
        self.settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.secrets = SecretStore(self.settings.home)
        self.metrics = Metrics()
        self.access_log = AccessLog()
        self.quarantine = Quarantine(self.settings.home)
        self.host = PluginHost(
            self.settings.plugin_start_timeout,
            split_list(self.settings.plugins_disabled),
            self.quarantine.keep_out,
        )
        self.hooks = Hooks(self.host.manager, self._hook_failed)
        self.permissions: dict[str, Permission] = {}
        self.jobs: dict[str, JobRef] = {job.name: job for job in (DELIVER_EVENT, SEND_RESET)}
        self.actions: dict[tuple[str, str], Action] = {}
        self.services: dict[str, tuple[str, Service]] = {}
        self.route_tables: list[tuple[str, RouteTable]] = []
        self.health_checks: list[tuple[str, HealthCheck]] = []
        self.sources: list[tuple[str, PluginSource]] = []
        self.directory = Directory(self)
        self.switched_off: frozenset[str] = frozenset()
        self.revision = 0  # counts changes of what is declared and in service
        self.pending: list[Pending] = []
        self._settings: dict[type[Settings], Settings] = {}
        self._settings_classes: dict[str, type[Settings]] = {}
        self._resources: dict[ResourceKey[Any], Any] = {}
        self._open_stores()
        self.host.load(candidates)
        self._insist_on_essential()
        self.identity = Identity(self)
        self.host.manager.register(self.identity, "kernel")
        self.hooks.freeze()
        self.guard = Guard(self)
        self.attempts = Attempts(self.guard)

    def _open_stores(self) -> None:
        settings = self.settings
        secret = settings.jwt_secret
        signing = secret.get_secret_value() if secret else self.secrets.ensure("jwt-secret")
        self.tokens = Tokens(settings, signing)
        redis = settings.redis_url
        self.database = Database(settings.sqlalchemy_url, pool_size=settings.database_pool_size)
        self.cache = open_cache(redis.get_secret_value() if redis else None, self.database, settings.workers)
        self.queue = JobQueue(settings.sqlalchemy_url)
        self.database.enqueue = self.queue.enqueue
        self.database.publish = self._publish
        self.database.has_listeners = lambda: self.hooks.exists("on_event")
        self.notices = self.database.notices = Notices(self.database)
        self.scratch = Scratch(settings.home / "tmp")
        self.blobs = FileBlobs(self.database, settings.home / "blobs")
        self.vectors = SqlVectorStore(self.database)  # until `migrate` knows what the database offers
        self.passwords = Passwords()
        self.account_states = AccountStates(self.database, settings.account_cache_seconds)
        self.notices.listen(ACCOUNT_TOPIC, self.account_states.invalidate)
        self.streams = OpenStreams(self.account_states)
        self.notices.listen(ACCOUNT_TOPIC, self.streams.changed)
        self.accounts = Accounts(self)
        self.platform_admins = PlatformAdmins(self)
        self.setup_codes = SetupCodes(self)
        self.administration = Administration(self)
        self.mail = Mail(settings)
        self.password_resets = PasswordResets(self)
        self.proxy = Proxy(self)

    # What handlers and plugins ask for

    @property
    def plugins(self) -> list[PluginRecord]:
        """What became of every plugin, in loading order."""
        return list(self.host.records.values())

    def settings_of(self, cls: type[S]) -> S:
        """The settings that the kernel read for a plugin's class."""
        return self._settings[cls]  # type: ignore[return-value]

    def settings_class(self, plugin: str) -> type[Settings] | None:
        """The settings class of a plugin in service; None where it has none."""
        return self._settings_classes.get(plugin)

    def apply_settings(self, plugin: str, stored: Mapping[str, Any]) -> None:
        """Read a plugin's settings anew, `stored` values (by field name) over the environment.

        What `settings_of` answers is replaced as a whole. Raises StartupError, changing nothing, for a value
        that does not fit.
        """
        cls = self._settings_classes[plugin]
        self._settings[cls] = self.loader.load(plugin, cls, stored)

    def is_on(self, plugin: str) -> bool:
        """Whether nobody switched the plugin off."""
        return plugin not in self.switched_off

    def switch_off(self, plugins: Iterable[str]) -> None:
        """From now on, exactly these plugins are switched off in this process.

        They stay loaded and their resources open, so that switching on is quick; but their routes answer
        403, and hooks, actions and health checks leave them out. Jobs accepted before are still run.
        """
        self.switched_off = frozenset(plugins)
        self.revision += 1
        self.hooks.silence(self.switched_off)

    def resource(self, key: ResourceKey[T]) -> T:
        """An opened resource. Raises Unavailable when its plugin could not open it."""
        try:
            return self._resources[key]  # type: ignore[no-any-return]
        except KeyError:
            raise Unavailable(f"'{key.name}' is not available on this server") from None

    def translate(self, error: BaseException) -> PlatformError | None:
        """What a client may hear of a driver's error; None for one that nobody foresaw."""
        if not is_outage(error):
            return None
        log.error("a store is unreachable: %s", type(error).__name__, exc_info=error)
        return Unavailable("The database is unreachable; try again")

    # Failures of plugins

    def _hook_failed(self, plugin: str, hook: str, error: BaseException) -> None:
        """A hook raised: a declaration takes the plugin out of service, an event is only reported."""
        reason = f"{hook} raised {type(error).__name__}: {error}"[:500]
        log.error("plugin %s: %s", plugin, reason, exc_info=error)
        if hook.startswith("register_"):
            self.fail_plugin(plugin, reason)
        elif plugin in self.host.records:
            self.host.records[plugin].problems.append(reason)
            del self.host.records[plugin].problems[:-20]

    def fail_plugin(self, name: str, reason: str) -> None:
        """Take a plugin and its dependants out of service, with all that they declared."""
        gone = set(self.host.fail(name, reason))
        self.revision += 1
        self._insist_on_essential()
        self.hooks.freeze()
        self.route_tables = [item for item in self.route_tables if item[0] not in gone]
        self.health_checks = [item for item in self.health_checks if item[0] not in gone]
        self.services = {k: v for k, v in self.services.items() if v[0] not in gone}
        self.actions = {k: v for k, v in self.actions.items() if k[0] not in gone}
        self.sources = [item for item in self.sources if item[0] not in gone]

    def _insist_on_essential(self) -> None:
        for record in self.plugins:
            if record.essential and record.status in ("failed", "refused"):
                raise StartupError(f"the essential plugin '{record.name}' {record.status}: {record.reason}")

    async def _publish(self, events: Sequence[Event]) -> None:
        for event in events:
            await self.hooks.tell("on_event", platform=self, event=event)

    # Boot, step by step

    def declare(self, name: str) -> list[tuple[str, Any]]:
        """All declarations of a `register_*` hook; one that hangs or raises takes its plugin out."""
        found = []
        for record in self.host.loaded():
            try:
                declared = ask(record.instance, name, self.settings.plugin_start_timeout)
            except Undeclared as error:
                self.fail_plugin(record.name, str(error))
            else:
                found += [] if declared is None else [(record.name, declared)]
        return [item for item in found if self.host.records[item[0]].status == "loaded"]

    def load_settings(self) -> None:
        """Each plugin's settings; a wrong one refuses its plugin."""
        for plugin, cls in self.declare("register_settings"):
            try:
                self._settings[cls] = self.loader.load(plugin, cls)
                self._settings_classes[plugin] = cls
            except StartupError as error:
                self.fail_plugin(plugin, str(error))
        for sentence in self.loader.unknown_variables(ignore=("PLATFORM_SECRET_",)):
            log.warning("%s", sentence)
        for sentence in self.loader.unknown_sections({"kernel", *self.host.records}):
            log.warning("%s", sentence)
        for name in set(split_list(self.settings.plugins_disabled)) - self.host.records.keys():
            log.warning("PLATFORM_PLUGINS_DISABLED: no plugin is called '%s'", name)

    def owners(self) -> list[Owner]:
        """Who has tables, kernel first; a plugin that claims another owner's table is refused."""
        return SchemaStart(self).owners()

    async def migrate(self, *, apply: bool) -> None:
        """Kernel first, then plugins; one whose migration fails is refused. Storage errors stop the start."""
        try:
            self.pending = await SchemaStart(self).migrate(apply=apply)
            store = self.settings.vector_store
            self.vectors = await open_vector_store(self.database, store, apply=apply)
        except (SQLAlchemyError, OSError) as error:
            raise StartupError(f"the database can't be used: {reason_of(error)}") from error

    async def start(self, stack: AsyncExitStack, on_stuck: OnStuck | None) -> None:
        """Open what plugins need, closed by `stack`, and give each its last word before serving."""
        await self.notices.start()
        await self.vectors.start()
        starter = Starter(self, stack, StartWatch(self.settings.plugin_start_timeout * 1.5 + 1, on_stuck))
        await starter.open_resources(lambda resource, value: self._resources.update({resource.key: value}))
        await starter.start_plugins()

    async def housekeep(self) -> None:
        """Remove what a killed process left behind; a failure is logged and stops nothing."""
        try:
            removed = await self.blobs.sweep() + await asyncio.to_thread(self.scratch.sweep)
        except (SQLAlchemyError, OSError):
            log.exception("leftovers of killed processes can't be removed")
            return
        if removed:
            log.info("removed %d leftovers of killed processes", removed)

    # The kernel's own health

    def kernel_checks(self) -> list[HealthCheck]:
        """Database, cache and plugins."""
        return [
            HealthCheck("database", self.database.ping, critical=True),
            HealthCheck("cache", self._check_cache),
            HealthCheck("plugins", self._check_plugins),
        ]

    async def _check_cache(self) -> None:
        try:
            await self.cache.ping()
        except CacheUnavailable as error:
            why = f"the cache store does not answer ({error}); requests are not rate-limited"
            raise Unhealthy(why) from None

    async def _check_plugins(self) -> None:
        bad = [r for r in self.plugins if r.status in ("failed", "refused")]
        if bad:
            raise Unhealthy("; ".join(f"{r.name}: {r.reason}" for r in bad))

    async def close(self) -> None:
        """Close what the kernel opened."""
        self.access_log.flush()
        await self.notices.stop()
        await self.streams.close()
        await self.vectors.close()
        await self.proxy.close()
        await self.queue.close()
        await self.cache.close()
        self.passwords.close()
        await self.database.close()


@asynccontextmanager
async def open_platform(
    loader: SettingsLoader,
    *,
    role: Role = "tool",
    candidates: Sequence[Candidate] | None = None,
    apply_migrations: bool | None = None,
    restart: bool = False,
) -> AsyncIterator[Platform]:
    """Settings, plugins, migrations, declarations, resources, in this order; closed in reverse.

    A ``tool`` opens no resources of plugins. With `restart` a plugin that blocks the event loop while it
    starts is put into quarantine and the process is replaced by a fresh one: only for a process that does
    nothing else. Raises StartupError when storage or authentication fails.
    """
    candidates = installed() if candidates is None else candidates
    platform = Platform(loader, candidates)
    platform.role = role
    apply = platform.settings.migrate_on_start if apply_migrations is None else apply_migrations
    async with AsyncExitStack() as stack:
        stack.push_async_callback(platform.close)
        platform.load_settings()
        await platform.migrate(apply=apply)
        if role != "tool":
            SchemaStart(platform).refuse_pending(platform.pending)
        collect(platform)
        check_routes(platform)
        if role != "tool":
            await platform.start(stack, _restart(platform, candidates) if restart else None)
        yield platform


@asynccontextmanager
async def declared_platform(
    loader: SettingsLoader, candidates: Sequence[Candidate] | None = None
) -> AsyncIterator[Platform]:
    """All that plugins declare, with nothing opened and the database left alone: for explaining commands."""
    platform = Platform(loader, installed() if candidates is None else candidates)
    try:
        platform.load_settings()
        platform.owners()
        collect(platform)
        yield platform
    finally:
        await platform.close()


def _restart(platform: Platform, candidates: Sequence[Candidate]) -> OnStuck:
    versions = {candidate.name: candidate.version for candidate in candidates}
    return partial(restart_without, platform.quarantine, versions.get)


def _check_service_names(settings: KernelSettings) -> None:
    known = [slot.name for slot in SLOTS]
    for name in settings.remote_services:
        if name not in known:
            raise StartupError(
                f"PLATFORM_SERVICE_URLS: '{name}' is not a service; there are {', '.join(known)}"
            )
