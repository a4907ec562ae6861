"""What a plugin declares at start: asked for within a time limit, and held to its type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernel.actions import Action
from kernel.auth.permissions import Permission
from kernel.bounded import run_bounded
from kernel.db.base import Tables
from kernel.errors import FAULTS
from kernel.gateway.services import Service
from kernel.health import HealthCheck
from kernel.http.routes import RouteTable
from kernel.jobs.declarations import Job
from kernel.resources import Resource
from kernel.settings import Settings

_ITEMS: Mapping[str, type[Any]] = {
    "register_actions": Action,
    "register_health_checks": HealthCheck,
    "register_jobs": Job,
    "register_permissions": Permission,
    "register_resources": Resource,
    "register_routes": RouteTable,
    "register_services": Service,
}
_SINGLE = frozenset({"register_settings", "register_tables"})


class Undeclared(Exception):
    """A `register_*` hook raised, hung or returned something else; the text says which."""


def ask(instance: object, hook: str, seconds: float) -> Any:
    """What `instance` declares through `hook`: a list, or one object; None where it declares nothing.

    Raises Undeclared.
    """
    implementation = getattr(instance, hook, None)
    if implementation is None:
        return None
    try:
        # In the bounded thread to its end: a generator runs only when it is read.
        return run_bounded(lambda: _checked(hook, implementation()), seconds)
    except TimeoutError:
        raise Undeclared(f"{hook} did not return within {seconds:g} s") from None
    except FAULTS as error:
        raise Undeclared(f"{hook} raised {type(error).__name__}: {error}") from error


def _checked(hook: str, declared: Any) -> Any:
    if declared is None:
        return None
    if hook in _SINGLE:
        return _check_single(hook, declared)
    items = list(declared)
    wanted = _ITEMS.get(hook, object)
    for item in items:
        if not isinstance(item, wanted):
            raise TypeError(f"expected a list of {wanted.__name__}, got {_kind(item)} in it")
    return items


def _check_single(hook: str, declared: Any) -> Any:
    if hook == "register_settings":
        if not (isinstance(declared, type) and issubclass(declared, Settings)):
            raise TypeError(f"expected a subclass of Settings, got {_kind(declared)}")
    elif not isinstance(declared, Tables):
        raise TypeError(f"expected Tables, got {_kind(declared)}")
    return declared


def _kind(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
