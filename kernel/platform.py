"""The platform that handlers, jobs and plugins use, complete before anyone gets it.

`kernel.boot` puts a platform together. Everything beyond these attributes (tokens, limits, the states of
plugins …) is a resource: ``platform.resource(TOKENS)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from kernel.auth.permissions import Permission
from kernel.auth.secrets import SecretStore
from kernel.db.engine import Database
from kernel.events.notices import Notices
from kernel.hooks.calling import Hooks
from kernel.observe.metrics import Metrics
from kernel.plugins.loading import PluginRecord
from kernel.plugins.plugin_settings import PLUGIN_SETTINGS
from kernel.plugins.resource_keys import ResourceKey, Resources
from kernel.plugins.states import PLUGIN_STATES
from kernel.settings.loading import KernelSettings, Settings
from kernel.stores.disk import DiskSpace, Scratch
from kernel.stores.protocols import BlobStore, Cache

T = TypeVar("T")
S = TypeVar("S", bound=Settings)
Role = Literal["api", "worker", "tool"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Platform:
    """One running platform. With the role ``tool``, it opens no resources of plugins."""

    role: Role
    settings: KernelSettings
    secrets: SecretStore
    metrics: Metrics
    database: Database
    notices: Notices
    hooks: Hooks
    permissions: Mapping[str, Permission]
    disk: DiskSpace
    blobs: BlobStore
    cache: Cache
    scratch: Scratch
    resources: Resources

    @property
    def plugins(self) -> list[PluginRecord]:
        """The state of every plugin, in loading order."""
        return list(self.resource(PLUGIN_STATES).records.values())

    def is_on(self, plugin: str) -> bool:
        """Whether the plugin is enabled."""
        return self.resource(PLUGIN_STATES).is_on(plugin)

    def own_port_of(self, service: str) -> int | None:
        """The separate port on which this process serves a service; None if it has none."""
        return (self.resources.find(PUBLISHED_PORTS) or {}).get(service)

    def settings_of(self, cls: type[S]) -> S:
        """The current settings of a plugin, by their class."""
        return self.resource(PLUGIN_SETTINGS).of(cls)

    def resource(self, key: ResourceKey[T]) -> T:
        """A part of the kernel, or a resource that a plugin opened. Raises Unavailable if it could not be
        opened.
        """
        return self.resources.get(key)


PUBLISHED_PORTS: ResourceKey[Mapping[str, int]] = ResourceKey("published_ports")
"""The actual ports of published services, by service; `Platform.own_port_of` returns them."""

PLATFORM: ResourceKey[Platform] = ResourceKey("platform")
"""For parts that are made before the platform and act later; all others get it as an argument."""
