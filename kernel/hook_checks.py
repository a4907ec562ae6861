"""Whether a plugin's hooks are ones that somebody calls."""

from __future__ import annotations

import difflib
from typing import Any

import pluggy

from kernel.hookspecs import PROJECT


def misfit(manager: pluggy.PluginManager, instance: Any) -> str | None:
    """Why the registered plugin's hooks do not fit, and what to do; None when all do."""
    for caller in manager.get_hookcallers(instance) or ():
        for implementation in caller.get_hookimpls():
            if implementation.plugin is instance:
                reason = _unfit(manager, caller, implementation)
                if reason is not None:
                    return reason
    return _unmarked(manager, instance)


def _unfit(manager: pluggy.PluginManager, caller: pluggy.HookCaller, implementation: Any) -> str | None:
    if implementation.wrapper or implementation.hookwrapper:
        return f"its hook '{caller.name}' is a wrapper, which the platform does not call; answer it plainly"
    if caller.spec is None and not implementation.optionalhook:
        return f"there is no hook '{caller.name}'{_closest(caller.name, _specified(manager))}"
    return None


def _unmarked(manager: pluggy.PluginManager, instance: Any) -> str | None:
    """A method named like a hook but not marked as one would silently never be called."""
    for name in sorted(_specified(manager)):
        method = getattr(instance, name, None)
        if callable(method) and not hasattr(method, f"{PROJECT}_impl"):
            return f"its method '{name}' is named like a hook but lacks @hookimpl; add it or rename it"
    return None


def _specified(manager: pluggy.PluginManager) -> set[str]:
    return {name for name, caller in vars(manager.hook).items() if getattr(caller, "spec", None)}


def _closest(name: str, known: set[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean '{close[0]}'?" if close else ""
