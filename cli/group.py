"""The top level of the command line: imports commands when used, shows errors without tracebacks."""

from __future__ import annotations

import errno
import importlib
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from cli.failures import CommandFailed, ExitCode
from cli.texts import Group

INTERRUPTED = 130
"""The exit code of an interrupt, as in a shell; also at a prompt."""


@dataclass(frozen=True)
class Entry:
    """A command or group: where its `app` is, and its line in the help."""

    name: str
    module: str
    summary: str
    panel: str


class LazyGroup(Group):
    """Knows its commands by name and summary, and imports a command's module when it is called."""

    entries: Sequence[Entry] = ()

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._modules = {entry.name: entry.module for entry in self.entries}
        for entry in self.entries:
            command = TyperCommand(entry.name, help=entry.summary, rich_help_panel=entry.panel)
            self.add_command(command)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A built-in command's stand-in, or a plugin's group of this name."""
        return super().get_command(ctx, cmd_name) or self._from_plugins(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """As in typer, with the stand-in replaced by the command itself."""
        name, command, rest = super().resolve_command(ctx, args)
        if name in self._modules:
            app = importlib.import_module(self._modules[name]).app
            command = _named(typer.main.get_command(app), name)
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
        found = {} if name.startswith("-") else commands_of_plugins()
        # Always a group: 'platformctl dog bark' must not change when a second command is added.
        return _named(typer.main.get_group(found[name]), name) if name in found else None


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
    from kernel.machine_faults import FOR_OPERATORS, machine_fault

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
