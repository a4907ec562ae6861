"""A plugin's declarations at the start: each hook gets a time limit, and what it returned is checked; common
mistakes are named, with what to write instead.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from kernel.auth.permissions import Permission
from kernel.db.base import Tables
from kernel.errors import ANY_ERROR
from kernel.events.events import Event
from kernel.gateway.services import Service
from kernel.hooks.types import Declaration, HookSpec
from kernel.http.routes import RouteTable
from kernel.jobs.declarations import Job, JobRef, LongJob
from kernel.jobs.kinds import Lane
from kernel.libs.background import run_bounded
from kernel.observe.health import HealthCheck
from kernel.plugins.actions import Action
from kernel.plugins.diagnostics import Diagnostic
from kernel.plugins.resource_keys import ResourceKey
from kernel.plugins.resources import Resource
from kernel.plugins.states import PluginStates
from kernel.process.start_guards import StartGuard
from kernel.settings.loading import Settings
from kernel.stores.offers import StoreOffer

R = TypeVar("R")

_ITEMS: Mapping[str, tuple[type[Any], ...]] = {
    "register_actions": (Action,),
    "register_app_setups": (FunctionType, MethodType, partial),
    "register_commands": (tuple,),
    "register_diagnostics": (Diagnostic,),
    "register_health_checks": (HealthCheck,),
    "register_hookspecs": (ModuleType, HookSpec),
    "register_jobs": (Job, LongJob),
    "register_permissions": (Permission,),
    "register_plugin_sources": (ResourceKey,),
    "register_resources": (Resource,),
    "register_routes": (RouteTable,),
    "register_services": (Service,),
    "register_start_guards": (StartGuard,),
    "register_stores": (StoreOffer,),
}
_CLASSES: Mapping[str, type[Any]] = {"register_events": Event}
_SINGLE: Mapping[str, type[Any]] = {"register_tables": Tables}
_SINGLE_CLASSES: Mapping[str, type[Any]] = {"register_settings": Settings}


class Undeclared(Exception):
    """A `register_*` hook raised, hung or returned the wrong type; the text says which."""


class Declarations:
    """Asks the plugins in service; one that hangs, raises or returns the wrong type is taken out."""

    def __init__(self, states: PluginStates, seconds: float) -> None:
        self._states = states
        self._seconds = seconds

    def of(self, spec: Declaration[[], R]) -> list[tuple[str, R]]:
        """(plugin, declaration) of a `register_*` hook, in loading order."""
        pairs: list[tuple[str, R]] = []
        for record in self._states.loaded():
            try:
                declared = ask(record.instance, spec, self._seconds)
            except Undeclared as error:
                self._states.fail(record.name, str(error), error)
            else:
                pairs += [] if declared is None else [(record.name, declared)]
        return [item for item in pairs if self._states.is_loaded(item[0])]


DECLARATIONS: ResourceKey[Declarations] = ResourceKey("declarations")


def ask(instance: object, spec: Declaration[[], R], seconds: float) -> R | None:
    """What `instance` declares through a hook; None if it declares nothing. Raises Undeclared."""
    implementation = getattr(instance, spec.name, None)
    if implementation is None:
        return None
    try:
        # Exhausted in the bounded thread: a generator runs only when it is read.
        return run_bounded(lambda: _checked(spec.name, implementation()), seconds)  # type: ignore[no-any-return]
    except TimeoutError:
        raise Undeclared(f"{spec.name} did not return within {seconds:g} s") from None
    except Misdeclared as error:
        raise Undeclared(f"{spec.name} {error}") from None
    except ANY_ERROR as error:
        raise Undeclared(f"{spec.name} raised {type(error).__name__}: {error}") from error


class Misdeclared(Exception):
    """What a hook returned does not fit; the text completes a sentence that begins with the hook."""


def _checked(hook: str, declared: Any) -> Any:
    """What `hook` returned, with iterables as lists; None if nothing is declared. Raises Misdeclared."""
    if declared is None:
        return None
    if inspect.iscoroutine(declared):
        declared.close()
        raise Misdeclared("must not be async: write 'def' instead of 'async def'")
    if hook in _SINGLE:
        return _one(declared, _SINGLE[hook])
    if hook in _SINGLE_CLASSES:
        return _one_class(declared, _SINGLE_CLASSES[hook])
    items = _listed(hook, declared)
    for item in items:
        _check_item(hook, item)
    return items


def _one(declared: Any, kind: type[Any]) -> Any:
    if isinstance(declared, kind):
        return declared
    raise Misdeclared(f"returned {_kind(declared)}; return one {kind.__name__}(…)")


def _one_class(declared: Any, kind: type[Any]) -> Any:
    if _is_class(declared, kind):
        return declared
    if isinstance(declared, kind):
        name = type(declared).__name__
        raise Misdeclared(f"returned an instance of {name}; return the class: return {name}")
    raise Misdeclared(f"returned {_kind(declared)}; return a subclass of {kind.__name__}")


def _listed(hook: str, declared: Any) -> list[Any]:
    kinds = _ITEMS.get(hook, ())
    several = isinstance(declared, tuple) and all(isinstance(item, kinds) for item in declared)
    alone = isinstance(declared, (*kinds, type, str, Mapping)) and not several
    if alone or not isinstance(declared, Iterable):
        raise Misdeclared(f"returned {_kind(declared)}; return a list: [{_spelled(hook, declared)}]")
    return list(declared)


def _check_item(hook: str, item: Any) -> None:
    if hook in _CLASSES:
        if not _is_class(item, _CLASSES[hook]):
            raise Misdeclared(f"contains {_kind(item)}; list subclasses of {_CLASSES[hook].__name__}")
        return
    kinds = _ITEMS.get(hook, (object,))
    if isinstance(item, type):
        raise Misdeclared(f"contains the class {item.__name__}; list an instance: {item.__name__}(…)")
    if not isinstance(item, kinds):
        raise Misdeclared(f"contains {_kind(item)}; list {_spelled(hook, item)}")
    problem = _misfit(item)
    if problem is not None:
        raise Misdeclared(problem)


def _misfit(item: Any) -> str | None:
    """What is wrong with the functions of an item."""
    if isinstance(item, HealthCheck) and not _takes(item.run, 1):
        return f"contains the check '{item.name}', whose function must take the platform: check(platform)"
    if isinstance(item, Diagnostic) and not _takes(item.examine, 1):
        return "contains a diagnostic whose function must take the platform: examine(platform)"
    if isinstance(item, Resource) and not _takes(item.open, 1):
        return f"contains '{item.key.name}', whose function must take the platform: open(platform)"
    if isinstance(item, StoreOffer) and not _takes(item.open, 1):
        return f"contains the store '{item.name}', whose function must take one argument: open(needs)"
    if isinstance(item, Job | LongJob):
        return _misfit_of_job(item)
    if isinstance(item, Action) and not _takes(item.handler, 2):
        return f"contains the action '{item.name}', whose handler must take (ctx, parameters)"
    return None


def _misfit_of_job(job: JobRef) -> str | None:
    head = f"contains the job '{job.name}', whose"
    parameters = ("platform", "payload", "progress") if isinstance(job, LongJob) else ("platform", "payload")
    if not _takes(job.handler, len(parameters)):
        return f"{head} handler must take ({', '.join(parameters)})"
    if job.lane not in get_args(Lane):
        return f"{head} lane is {job.lane!r}; it must be one of {', '.join(get_args(Lane))}"
    if job.schedule is not None and not _is_made_of_nothing(job.payload):
        payload = _name(job.payload)
        return (
            f"{head} payload {payload} needs arguments, but the clock passes none; give every field a default"
        )
    return None


def _is_made_of_nothing(payload: type[BaseModel]) -> bool:
    try:
        payload()
    except ValidationError:
        return False
    return True


def _takes(function: Any, count: int) -> bool:
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # functions written in C may have no signature
        return True
    return True


def _is_class(value: Any, kind: type[Any]) -> bool:
    return isinstance(value, type) and issubclass(value, kind)


def _spelled(hook: str, item: Any) -> str:
    """An item as an author would write it."""
    if hook == "register_commands":
        return "('name', typer.Typer(…))"
    if hook in _CLASSES:
        return _name(item)
    if hook == "register_hookspecs":
        return "hookspecs"
    kinds = _ITEMS.get(hook)
    return f"{kinds[0].__name__}(…)" if kinds else f"{_name(item)}(…)"


def _kind(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, ModuleType):
        return f"the module {value.__name__}"
    return f"a {type(value).__name__}"


def _name(value: object) -> str:
    return value.__name__ if isinstance(value, type) else type(value).__name__
