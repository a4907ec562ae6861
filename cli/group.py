"""The top level of the command line: imports commands when used, shows errors without tracebacks.

Plugins bring commands, too. One whose package has a module `commands` with `COMMANDS`, which its hook
`register_commands` returns, is found without importing the plugin itself, so help and completion stay fast.
"""

from __future__ import annotations

import errno
import importlib
import traceback
from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from cli.failures import CommandFailed, ExitCode
from cli.texts import Group

INTERRUPTED = 130
"""The exit code of an interrupt, as in a shell; also at a prompt."""


RUN, USE, MANAGE, EXTEND, FROM_PLUGINS = "Run", "Use", "Manage", "Extend", "From plugins"
"""The panels of the help, in this order."""


class LazyApp(typer.Typer):
    """A command or group, known by its line in the help; `app` of `module` is imported when it is called."""

    def __init__(self, module: str, summary: str, panel: str = FROM_PLUGINS) -> None:
        super().__init__(help=summary, rich_help_panel=panel, add_completion=False)
        self.module = module
        self.summary = summary
        self.panel = panel

    def load(self) -> typer.Typer:
        """The command itself."""
        app = importlib.import_module(self.module).app
        assert isinstance(app, typer.Typer)
        return app


Entries = Sequence[tuple[str, LazyApp]]


class LazyGroup(Group):
    """Knows its commands by name and summary, and imports a command's module when it is called."""

    entries: Entries = ()

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, entry in self._apps.items():
            self.add_command(TyperCommand(name, help=entry.summary, rich_help_panel=entry.panel))

    @cached_property
    def _apps(self) -> dict[str, LazyApp]:
        """All commands by name, by panel; a command of our own can't be replaced."""
        own = dict(self.entries)
        brought = {name: app for name, app in entries_of_plugins() if name not in own}
        return dict(sorted((own | brought).items(), key=lambda item: _panel_number(item[1].panel)))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A known command's stand-in, or a group that only the plugin itself can name."""
        return super().get_command(ctx, cmd_name) or self._from_plugins(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """As in typer, with the stand-in replaced by the command itself."""
        name, command, rest = super().resolve_command(ctx, args)
        if name in self._apps:
            command = _named(typer.main.get_command(self._apps[name].load()), name)
        return name, command, rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error ends in one or two lines and an exit code."""
        try:
            return super().invoke(ctx)
        except typer.Abort as abort:
            if not isinstance(abort.__context__, KeyboardInterrupt):
                raise
            typer.echo(err=True)  # end the prompt's line
            raise typer.Exit(INTERRUPTED) from None
        except (typer.Exit, typer.TyperException):
            raise
        except Exception as error:  # boundary: no error ends in an unrequested traceback
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise
            raise typer.Exit(tell(error)) from None

    def _from_plugins(self, ctx: Any, name: str) -> Any:
        from cli.extensions import commands_of_plugins, on_platform

        ctx.obj = on_platform
        commands = [] if name.startswith("-") else commands_of_plugins()
        group = next((one.group for one in commands if one.name == name), None)
        # Always a group: 'platformctl dog bark' must not change when a second command is added.
        return None if group is None else _named(typer.main.get_group(group), name)


def entries_of_plugins() -> list[tuple[str, LazyApp]]:
    """The commands that installed plugins list in their package's module `commands`.

    A package that can't be imported lists none; `platformctl plugins why` says what is wrong with it. Of two
    with the same name, that of a built-in plugin counts.
    """
    listed: dict[str, LazyApp] = {}
    points = entry_points(group="platform.plugins")
    for point in sorted(points, key=lambda point: not point.module.startswith("builtin_plugins.")):
        try:
            module = importlib.import_module(f"{point.module.rpartition('.')[0]}.commands")
            for name, app in module.COMMANDS:
                if isinstance(app, LazyApp):
                    listed.setdefault(name, app)
        except Exception:  # noqa: BLE001 - boundary: others' packages; many have no such module
            continue
    return list(listed.items())


def _panel_number(panel: str) -> int:
    panels = (RUN, USE, MANAGE, EXTEND)
    return panels.index(panel) if panel in panels else len(panels)


def _named(command: Any, name: str) -> Any:
    command.name = name
    return command


def tell(error: Exception) -> int:
    """Print an error to standard error; returns the exit code. `PLATFORM_DEBUG=1` adds the traceback."""
    from cli import console

    if _debugging():
        traceback.print_exception(error)
    if isinstance(error, CommandFailed):
        console.failed(error.text, error.remedy)
        return error.code
    if _absent(error):
        remedy = "'platformctl doctor' shows what this installation lacks."
        console.failed(f"the command needs a package that is not installed: {error}", remedy)
    elif _expected(error):
        console.failed(_text(error))
    else:
        place = traceback.extract_tb(error.__traceback__)[-1]
        console.failed(
            f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})",
            "This should not happen. Run it again with PLATFORM_DEBUG=1 and report the traceback.",
        )
    return ExitCode.FAILED


def _expected(error: Exception) -> bool:
    from kernel.errors import PlatformError, StartupError

    public = PlatformError | StartupError | OSError
    return isinstance(error, public) or _machine_fault(error) is not None


def _machine_fault(error: Exception) -> str | None:
    """The operator's text for a machine fault behind an error, including database errors."""
    from kernel.process.machine_faults import FOR_OPERATORS, machine_fault

    fault = machine_fault(error)
    return None if fault is None else FOR_OPERATORS.get(fault)


def _absent(error: Exception) -> bool:
    """Whether a package that the command needs is not part of this installation."""
    return isinstance(error, ModuleNotFoundError)


def _text(error: Exception) -> str:
    if (fault := _machine_fault(error)) is not None:
        return fault
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def _debugging() -> bool:
    from cli.running import cli_settings
    from kernel.errors import StartupError

    try:
        return cli_settings().debug
    except StartupError:
        return False
