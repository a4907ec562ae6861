"""The registry of hooks and their implementations."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from types import FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import pluggy

from kernel.hooks.types import PROJECT, HookSpec, specs_in

IMPL = f"{PROJECT}_impl"
"""The attribute with which `hookimpl` marks a function."""


class HookManager(pluggy.PluginManager):
    """pluggy's manager, which also knows the specifications by name."""

    def __init__(self, *holders: object) -> None:
        super().__init__(PROJECT)
        self.specs: dict[str, HookSpec[..., Any]] = {}
        for holder in holders:
            self.add_specs(holder)

    def add_specs(self, holder: object) -> None:
        """Add a module's specifications, or a single one. Raises ValueError for none or for a taken name."""
        specs = specs_in(holder)
        if not specs:
            raise ValueError(
                f"{_label(holder)} contains no hook specification: write @hookspec.first above it"
            )
        for spec in specs:
            if spec.name in self.specs:
                raise ValueError(f"a hook named '{spec.name}' already exists; choose another name")
            self.specs[spec.name] = spec
        # All in one class: pluggy inspects every attribute of the object, including inherited ones.
        self.add_hookspecs(type("Specifications", (), {s.name: staticmethod(s.function) for s in specs}))

    def register(self, plugin: object, name: str | None = None) -> str | None:
        """Register a plugin and its hooks."""
        self._candidates = marked_names(plugin)
        return super().register(plugin, name)

    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        """What `hookimpl` says about an attribute; pluggy's own search takes 15 µs for each."""
        return super().parse_hookimpl_opts(plugin, name) if name in self._candidates else None


def marked_names(plugin: object) -> frozenset[str]:
    """The attributes that are marked as hooks somewhere in the plugin's object or classes, and its slots."""
    places = [getattr(plugin, "__dict__", {}), *map(vars, type(plugin).__mro__)]
    return frozenset(name for place in places for name, value in place.items() if _may_be_hook(value))


def _may_be_hook(value: object) -> bool:
    if isinstance(value, MethodType | staticmethod | classmethod):
        return hasattr(value, IMPL) or hasattr(value.__func__, IMPL)
    return isinstance(value, MemberDescriptorType) or (
        isinstance(value, FunctionType) and hasattr(value, IMPL)
    )


def brought(declared: object) -> list[object]:
    """What `register_hookspecs` returned, as a list. Raises ValueError."""
    if isinstance(declared, ModuleType | HookSpec):
        raise ValueError(f"register_hookspecs returned {_label(declared)} alone; return a list: [hookspecs]")
    if inspect.iscoroutine(declared):
        declared.close()
        raise ValueError("register_hookspecs must not be async: write 'def' instead of 'async def'")
    if not isinstance(declared, Iterable | None):
        raise ValueError(
            f"register_hookspecs returned a {type(declared).__name__}; return a list: [hookspecs]"
        )
    return list(declared or ())


def _label(holder: object) -> str:
    return str(getattr(holder, "__name__", None) or type(holder).__name__)
