"""Typed names for the parts of a platform: ``platform.resource(KEY)``."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from kernel.errors import Unavailable

T = TypeVar("T")


class ResourceKey(Generic[T]):
    """The name and type of a part. Two keys are never equal, even with the same name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"ResourceKey({self.name!r})"


class Resources:
    """The parts of one platform by key: the kernel's own, then those that plugins opened."""

    def __init__(self) -> None:
        self._values: dict[ResourceKey[Any], Any] = {}

    def add(self, key: ResourceKey[T], value: T) -> T:
        """Add a part under its key; returns the part."""
        self._values[key] = value
        return value

    def find(self, key: ResourceKey[T]) -> T | None:
        """The part with this key; None if this process did not open it."""
        return self._values.get(key)

    def get(self, key: ResourceKey[T]) -> T:
        """The part with this key. Raises Unavailable if its plugin could not open it."""
        try:
            return self._values[key]  # type: ignore[no-any-return]
        except KeyError:
            raise Unavailable(f"'{key.name}' is not available on this server") from None
