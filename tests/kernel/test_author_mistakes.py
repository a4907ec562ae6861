"""The usual mistakes of plugin authors: each is told with what to write instead."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import partialmethod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio
import typer
from pydantic import BaseModel, field_validator

from kernel.hooks import hookspecs
from kernel.plugins.declarations import DECLARATIONS
from kernel.plugins.loading import Candidate, PluginRecord
from kernel.sdk import (
    PLUGIN_STATES,
    Event,
    HealthCheck,
    Job,
    LongJob,
    Permission,
    Plugin,
    Resource,
    ResourceKey,
    RouteTable,
    Settings,
    Tables,
    hookimpl,
    hookspec,
)
from kernel.testing import platforms

READ = Permission("mistaken.read", "Read.")


class Payload(BaseModel):
    """Of a job."""


class NotesSettings(Settings):
    """Of a plugin."""


class RaisingSettings(Settings):
    """Has a validator that raises what only a defect would."""

    color: str = "blue"

    @field_validator("color")
    @classmethod
    def _known(cls, value: str) -> str:
        return {"red": "#f00"}[value]


class Sent(Event):
    """Of a plugin."""

    event_name = "mistaken.sent"


async def unasked() -> None:
    """A check that does not take the platform."""


def unopened() -> Any:
    """A resource that does not take the platform."""


async def unhandled(payload: Payload) -> None:
    """A job's handler that does not take the platform."""


class Letter(BaseModel):
    """The payload of a job that must be told something."""

    to: str


async def handled(platform: Any, payload: Any) -> None:
    """A job's handler."""


@hookspec.declaration
def register_recipes() -> list[str]:
    """Recipes."""
    return []


class Source:
    """A plugin source, made of nothing."""


RETURNED: dict[str, tuple[str, Any, str]] = {
    "one_permission": (
        "register_permissions",
        READ,
        "register_permissions returned a Permission; return a list: [Permission(…)]",
    ),
    "one_table_of_routes": (
        "register_routes",
        RouteTable("Notes"),
        "register_routes returned a RouteTable; return a list: [RouteTable(…)]",
    ),
    "one_event": ("register_events", Sent, "register_events returned the class Sent; return a list: [Sent]"),
    "one_command": (
        "register_commands",
        ("notes", typer.Typer()),
        "register_commands returned a tuple; return a list: [('name', typer.Typer(…))]",
    ),
    "one_module_of_hooks": (
        "register_hookspecs",
        hookspecs,
        "its hooks are invalid: register_hookspecs returned kernel.hooks.hookspecs alone;"
        " return a list: [hookspecs]",
    ),
    "no_hook_in_it": (
        "register_hookspecs",
        [SimpleNamespace(__name__="recipes")],
        "its hooks are invalid: recipes contains no hook specification: write @hookspec.first above it",
    ),
    "class_of_permission": (
        "register_permissions",
        [Permission],
        "register_permissions contains the class Permission; list an instance: Permission(…)",
    ),
    "source_itself": (
        "register_plugin_sources",
        [Source()],
        "register_plugin_sources contains a Source; list ResourceKey(…)",
    ),
    "event_made": (
        "register_events",
        [Sent()],
        "register_events contains a Sent; list subclasses of Event",
    ),
    "other_things": (
        "register_jobs",
        [READ],
        "register_jobs contains a Permission; list Job(…)",
    ),
    "settings_made": (
        "register_settings",
        NotesSettings(),
        "register_settings returned an instance of NotesSettings; return the class: return NotesSettings",
    ),
    "raising_settings": (
        "register_settings",
        RaisingSettings,
        "reading its settings raised KeyError; see the log. To refuse a value, a validator of "
        "RaisingSettings must raise ValueError",
    ),
    "list_of_settings": (
        "register_settings",
        [NotesSettings],
        "register_settings returned a list; return a subclass of Settings",
    ),
    "list_of_tables": ("register_tables", [Tables], "register_tables returned a list; return one Tables(…)"),
    "check_without_platform": (
        "register_health_checks",
        [HealthCheck("notes", unasked)],  # type: ignore[arg-type]
        "register_health_checks contains the check 'notes', whose function must take the platform:"
        " check(platform)",
    ),
    "resource_without_platform": (
        "register_resources",
        [Resource(ResourceKey[None]("notes"), unopened)],
        "register_resources contains 'notes', whose function must take the platform: open(platform)",
    ),
    "job_without_platform": (
        "register_jobs",
        [Job("notes.send", Payload, unhandled)],  # type: ignore[arg-type]
        "register_jobs contains the job 'notes.send', whose handler must take (platform, payload)",
    ),
    "long_job_without_progress": (
        "register_jobs",
        [LongJob("notes.read", Payload, handled, title="Read")],  # type: ignore[arg-type]
        "register_jobs contains the job 'notes.read', whose handler must take (platform, payload, progress)",
    ),
    "job_of_no_lane": (
        "register_jobs",
        [Job("notes.fast", Payload, handled, lane="fast")],  # type: ignore[arg-type]
        "register_jobs contains the job 'notes.fast', whose lane is 'fast'; it must be one of quick,"
        " standard, large",
    ),
    "scheduled_with_arguments": (
        "register_jobs",
        [Job("notes.nightly", Letter, handled, schedule="@daily")],
        "register_jobs contains the job 'notes.nightly', whose payload Letter needs arguments, but the clock"
        " passes none; give every field a default",
    ),
}


def returning(name: str, hook: str, declared: Any) -> type[Plugin]:
    """A plugin whose one declaration is this."""
    return type(name.title(), (Plugin,), {"name": name, hook: hookimpl(_method(hook, declared))})


def _method(hook: str, declared: Any) -> Callable[[Any], Any]:
    def method(_self: Any) -> Any:
        return declared

    method.__name__ = hook
    return method


class AsyncDeclaration(Plugin):
    name = "async_declaration"

    @hookimpl
    async def register_routes(self) -> list[RouteTable]:
        return []


class AsyncPlain(Plugin):
    """`select_members` is one of the hooks that nobody awaits."""

    name = "async_plain"

    @hookimpl
    async def select_members(self, organization_id: int) -> None:
        return None


class StrangeArgument(Plugin):
    name = "strange_argument"

    @hookimpl
    def find_scope(self, platform: Any, pricipal: Any) -> None:
        return None


class NoArguments(Plugin):
    name = "no_arguments"

    @hookimpl
    def register_routes(self, platform: Any) -> list[RouteTable]:
        return []


class Unmarked(Plugin):
    name = "unmarked"

    def register_routes(self) -> list[RouteTable]:
        return []


class AProperty(Plugin):
    name = "a_property"

    @property
    def register_routes(self) -> list[RouteTable]:
        raise AssertionError("nobody asks for it")


class Partial(Plugin):
    name = "partial"

    def _routes(self, path: str) -> list[RouteTable]:
        return [RouteTable(path)]

    register_routes = partialmethod(_routes, "Partial")


class UnmarkedClassMethod(Plugin):
    name = "unmarked_class_method"

    @classmethod
    def register_routes(cls) -> list[RouteTable]:
        return []


class UnmarkedAndMisspelt(Plugin):
    name = "unmarked_and_misspelt"

    def register_rotues(self) -> list[RouteTable]:
        return []


class Misspelt(Plugin):
    name = "misspelt"

    @hookimpl
    def find_scopes(self) -> None:
        return None


class Nameless(Plugin):
    """Has no name."""


class NamedOtherwise(Plugin):
    name = "otherwise"


WRITTEN: dict[str, tuple[type[Plugin] | Candidate, str]] = {
    "async_declaration": (
        AsyncDeclaration,
        "its hook 'register_routes' must not be async: write 'def' instead of 'async def'",
    ),
    "async_plain": (
        AsyncPlain,
        "its hook 'select_members' must not be async: write 'def' instead of 'async def'",
    ),
    "strange_argument": (
        StrangeArgument,
        "its hook 'find_scope' has no argument 'pricipal' (it may take: platform, principal);"
        " did you mean 'principal'?",
    ),
    "no_arguments": (
        NoArguments,
        "its hook 'register_routes' has no argument 'platform' (it may take: nothing)",
    ),
    "a_property": (
        AProperty,
        "its property 'register_routes' is named like a hook; write a method with @hookimpl, or rename it",
    ),
    "partial": (
        Partial,
        "its partialmethod 'register_routes' is named like a hook; write a method with @hookimpl, or"
        " rename it",
    ),
    "unmarked_class_method": (
        UnmarkedClassMethod,
        "its method 'register_routes' is named like a hook but lacks @hookimpl; add it or rename it",
    ),
    "unmarked": (
        Unmarked,
        "its method 'register_routes' is named like a hook but lacks @hookimpl; add it or rename it",
    ),
    "unmarked_and_misspelt": (
        UnmarkedAndMisspelt,
        "its method 'register_rotues' is named like a hook, but there is no such hook;"
        " did you mean 'register_routes'?",
    ),
    "misspelt": (Misspelt, "there is no hook 'find_scopes'; did you mean 'find_scope'?"),
    "nameless": (
        Candidate("nameless", Nameless),
        "it has no name: write name = 'nameless' in the class Nameless",
    ),
    "named": (
        Candidate("named", NamedOtherwise),
        "its entry point is called 'named', but the plugin says 'otherwise'; make them the same",
    ),
    "kept_notes": (
        Candidate("kept_notes", lambda: hookspecs),
        "its entry point gives a module; name the class in it: kernel.hooks.hookspecs:KeptNotesPlugin",
    ),
}


def mistaken() -> Iterable[type[Plugin] | Candidate]:
    """A plugin for each mistake."""
    yield from (returning(name, hook, declared) for name, (hook, declared, _) in RETURNED.items())
    yield from (plugin for plugin, _ in WRITTEN.values())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def records(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, PluginRecord]]:
    """What became of them, in one platform."""
    home: Path = tmp_path_factory.mktemp("mistakes") / "home"
    async with platforms(home) as start:
        running = await start(*mistaken())
        running.platform.resource(DECLARATIONS).of(hookspecs.register_commands)  # asked by the terminal alone
        yield running.platform.resource(PLUGIN_STATES).records


EXPECTED: Sequence[tuple[str, str]] = [
    *((name, reason) for name, (_, _, reason) in RETURNED.items()),
    *((name, reason) for name, (_, reason) in WRITTEN.items()),
]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("name", "reason"), EXPECTED, ids=[name for name, _ in EXPECTED])
async def test_a_mistake_is_named(records: dict[str, PluginRecord], name: str, reason: str) -> None:
    """The plugin is out of service, and the reason says what its author has to write."""
    assert records[name].status in ("refused", "failed")
    assert records[name].reason == reason
