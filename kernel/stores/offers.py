"""Stores that plugins offer. A setting chooses one by name; it is open before anyone uses it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kernel.db.engine import Database
from kernel.errors import StartupError
from kernel.plugin_settings import PluginSettings
from kernel.secrets import SecretStore
from kernel.settings import KernelSettings, Settings
from kernel.stores.disk import DiskSpace
from kernel.stores.protocols import BlobStore, Cache, VectorStore

T = TypeVar("T")
S = TypeVar("S", bound=Settings)


@dataclass(frozen=True)
class StoreNeeds:
    """What a store is opened with: the platform does not exist yet."""

    settings: KernelSettings
    database: Database
    secrets: SecretStore
    disk: DiskSpace
    plugin_settings: PluginSettings

    def settings_of(self, cls: type[S]) -> S:
        """The settings that the kernel read for a plugin's class."""
        return self.plugin_settings.of(cls)


class StoreKind(Generic[T]):
    """A kind of store, the kernel setting that chooses one, and the kernel's own choices."""

    def __init__(self, name: str, setting: str, own: Sequence[str]) -> None:
        self.name = name
        self.setting = setting
        self.own = tuple(own)

    def __repr__(self) -> str:
        return f"StoreKind({self.name!r})"


VECTOR_STORE: StoreKind[VectorStore] = StoreKind(
    "vector store", "vector_store", ("auto", "faiss", "pgvector")
)
BLOB_STORE: StoreKind[BlobStore] = StoreKind("blob store", "blob_store", ("files",))
CACHE_STORE: StoreKind[Cache] = StoreKind("cache store", "cache_store", ("auto",))


@dataclass(frozen=True)
class StoreOffer(Generic[T]):
    """A store that a plugin brings: opened by entering `open(needs)`, closed by leaving it.

    The setting of its kind chooses it by `name`, as in ``PLATFORM_VECTOR_STORE=name``, or by an address with
    the name as its scheme, as in ``PLATFORM_BLOB_STORE=name://place``. It must pass the conformance suite of
    its kind (`kernel.stores.conformance`, `kernel.stores.conformance_vectors`). If a method of a vector
    store fails, or is awaited for more than 30 seconds, the response is 503 with the plugin's name; a write
    inside a unit can't be ended, but the log names it after 30 seconds.

    An `early` store needs no tables of its plugin before it is settled (`HeldBlobs.settle`). It is opened
    before the migrations, so that a backup made then, or before a restore, can contain what it stores.
    """

    kind: StoreKind[T]
    name: str
    open: Callable[[StoreNeeds], AbstractAsyncContextManager[T]]
    early: bool = False


class OfferedStores:
    """What the plugins in service offer."""

    def __init__(self) -> None:
        self._offers: dict[tuple[str, str], tuple[str, StoreOffer[Any]]] = {}

    def add(self, plugin: str, offers: Sequence[StoreOffer[Any]]) -> str | None:
        """Add a plugin's stores. Returns None, or why they were refused."""
        for offer in offers:
            key = (offer.kind.name, offer.name)
            holder = "the platform" if offer.name in offer.kind.own else self._offers.get(key, ("",))[0]
            if holder:
                return f"its {offer.kind.name} '{offer.name}' is already offered by {holder}; rename it"
            self._offers[key] = (plugin, offer)
        return None

    def chosen(self, kind: StoreKind[T], settings: KernelSettings) -> tuple[str, StoreOffer[T]] | None:
        """The (plugin, offer) that the settings name; None for the kernel's own. Raises StartupError."""
        name = str(getattr(settings, kind.setting)).partition("://")[0]
        if name in kind.own:
            return None
        found = self._offers.get((kind.name, name))
        if found is not None:
            return found
        there_are = ", ".join([*kind.own, *(own for of, own in self._offers if of == kind.name)])
        raise StartupError(
            f"{settings.env_names()[kind.setting][0]} is '{name}', but no plugin in service offers that"
            f" {kind.name}; available: {there_are}. 'platformctl plugins list' shows what is out of service"
        )
