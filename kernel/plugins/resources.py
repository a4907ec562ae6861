"""What plugins open at the start and close at shutdown."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from kernel.plugins.resource_keys import ResourceKey

if TYPE_CHECKING:
    from kernel.platform import Platform

T = TypeVar("T")


@dataclass(frozen=True)
class Resource(Generic[T]):
    """Opened by entering `open(platform)`, and closed by leaving it, in reverse order.

    `essential_in` names the processes that need it: the API (``api``), the worker (``worker``) or both.
    """

    key: ResourceKey[T]
    open: Callable[[Platform], AbstractAsyncContextManager[T]]
    essential_in: frozenset[str] = frozenset({"api", "worker"})
