"""Stores that plugins offer. A setting chooses one by name; it is open before anyone uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kernel.auth.secrets import SecretStore
from kernel.db.engine import Database
from kernel.errors import StartupError
from kernel.plugins.plugin_settings import PluginSettings
from kernel.plugins.resource_keys import ResourceKey
from kernel.settings.loading import KernelSettings, Settings
from kernel.stores.disk import DiskSpace
from kernel.stores.offered_blobs import watched_blobs
from kernel.stores.protocols import BlobStore, Cache

T = TypeVar("T")
S = TypeVar("S", bound=Settings)

_AUTOMATIC = "auto"


@dataclass(frozen=True)
class StoreNeeds:
    """What a store is opened with: the platform does not exist yet.

    A store does background work only if it is opened for `serving`, and prepares the database only if
    `migrating`.
    """

    settings: KernelSettings
    database: Database
    secrets: SecretStore
    disk: DiskSpace
    plugin_settings: PluginSettings
    serving: bool = False
    migrating: bool = False

    def settings_of(self, cls: type[S]) -> S:
        """The settings that the kernel read for a plugin's class."""
        return self.plugin_settings.of(cls)


@dataclass(frozen=True, eq=False)
class StoreKind(Generic[T]):
    """A kind of store: where the platform keeps it, and the setting that chooses one.

    The setting is the field `setting` of the class `settings`, the kernel's or that of the plugin whose kind
    it is. `own` names the kernel's own choices. With a `fallback`, ``auto`` means the first offer that suits
    the platform, otherwise what has this name. `supervised(store, plugin)` wraps a plugin's store.
    """

    name: str
    key: ResourceKey[T]
    settings: type[Settings]
    setting: str
    own: Sequence[str] = ()
    fallback: str | None = None
    supervised: Callable[[T, str], T] | None = None

    def name_in(self, needs: StoreNeeds) -> str:
        """The name that the setting has; of an address, its scheme."""
        values = needs.settings if self.settings is KernelSettings else needs.settings_of(self.settings)
        return str(getattr(values, self.setting)).partition("://")[0]

    def holder(self, name: str) -> str:
        """Who offers the name without any plugin's offer; empty if nobody does."""
        return "the platform" if name in self.own or (self.fallback and name == _AUTOMATIC) else ""


BLOB_STORE: StoreKind[BlobStore] = StoreKind(
    "blob store",
    ResourceKey("blobs"),
    KernelSettings,
    "blob_store",
    own=("files",),
    supervised=watched_blobs,
)
CACHE_STORE: StoreKind[Cache] = StoreKind(
    "cache store", ResourceKey("cache"), KernelSettings, "cache_store", own=("memory",), fallback="memory"
)


@dataclass(frozen=True)
class StoreOffer(Generic[T]):
    """A store that a plugin brings: opened by entering `open(needs)`, closed by leaving it.

    The setting of its kind chooses it by `name`, as in ``PLATFORM_CACHE_STORE=name``, or by an address with
    the name as its scheme, as in ``PLATFORM_BLOB_STORE=name://place``. It must pass the conformance suite of
    its kind (`kernel.testing.conformance` for blobs and caches).

    An `early` store needs no tables of its plugin before it is settled (`HeldBlobs.settle`). It is opened
    before the migrations, so that a backup made then, or before a restore, can contain what it stores. If
    the setting is ``auto`` (see `StoreKind`), `suits(needs)` says whether it means this store.
    """

    kind: StoreKind[T]
    name: str
    open: Callable[[StoreNeeds], AbstractAsyncContextManager[T]]
    early: bool = False
    suits: Callable[[StoreNeeds], bool] | None = None


class OfferedStores:
    """What the plugins in service offer."""

    def __init__(self) -> None:
        self._offers: dict[tuple[str, str], tuple[str, StoreOffer[Any]]] = {}

    def add(self, plugin: str, offers: Sequence[StoreOffer[Any]]) -> str | None:
        """Add a plugin's stores. Returns None, or why they were refused."""
        for offer in offers:
            key = (offer.kind.name, offer.name)
            holder = offer.kind.holder(offer.name) or self._offers.get(key, ("",))[0]
            if holder:
                return f"its {offer.kind.name} '{offer.name}' is already offered by {holder}; rename it"
            self._offers[key] = (plugin, offer)
        return None

    def plugin_kinds(self, needs: StoreNeeds) -> Iterator[StoreKind[Any]]:
        """The kinds that plugins in service brought, each once."""
        classes = set(needs.plugin_settings.classes().values())
        kinds = {offer.kind.name: offer.kind for _, offer in self._offers.values()}
        return (kind for kind in kinds.values() if kind.settings in classes)

    def chosen(self, kind: StoreKind[T], needs: StoreNeeds) -> tuple[str, StoreOffer[T]] | None:
        """The (plugin, offer) that the settings name; None for the kernel's own. Raises StartupError."""
        name = kind.name_in(needs)
        offers = {
            offer.name: (plugin, offer) for plugin, offer in self._offers.values() if offer.kind is kind
        }
        if name == _AUTOMATIC and kind.fallback is not None:
            suiting = (own for own, (_, offer) in offers.items() if offer.suits and offer.suits(needs))
            name = next(suiting, kind.fallback)
        if name in kind.own:
            return None
        if name in offers:
            return offers[name]
        automatic = [_AUTOMATIC] if kind.fallback is not None else []
        raise StartupError(
            f"{kind.settings.env_names()[kind.setting][0]} is '{name}', but no plugin in service offers that"
            f" {kind.name}; available: {', '.join([*kind.own, *automatic, *sorted(offers)])}."
            " 'platformctl plugins list' shows what is out of service"
        )
