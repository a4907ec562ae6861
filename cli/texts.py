"""Help texts: the help of groups and commands ends with examples that fit the screen."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

if TYPE_CHECKING:
    from rich.console import Console
    from typer.models import CommandFunctionType

    _Base = TyperCommand
else:
    _Base = object


@dataclass(frozen=True)
class Examples:
    """Command lines with their purposes, and a remark below them."""

    lines: tuple[tuple[str, str], ...]
    after: str = ""


def examples(*lines: tuple[str, str], after: str = "") -> Any:
    """The `epilog` of a command made by `App`: command lines with their purposes."""
    return Examples(lines, after)


class WithExamples(_Base):
    """Prints `Examples` below typer's own help, which supports only running text."""

    def __init__(self, *args: Any, epilog: Any = None, help: str | None = None, **options: Any) -> None:
        self.examples: Examples | None = epilog
        super().__init__(*args, help=_unwrapped(help), **options)
        for argument in (one for one in self.params if isinstance(one, TyperArgument)):
            argument.metavar = argument.metavar or argument.display_name_raw.upper()

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Arguments in capitals: NAME is required, [NAME] optional. typer would write {NAME}."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help to standard output."""
        from rich.console import Console

        super().format_help(ctx, formatter)
        if self.examples is not None:
            _print(self.examples, Console(highlight=False))


class Command(WithExamples, TyperCommand):
    """A command with examples."""


class Group(WithExamples, TyperGroup):
    """A group with examples."""


class App(typer.Typer):
    """A command, or a group of them. Only the top level sets up completion."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"cls": Group, "add_completion": False, "rich_markup_mode": "rich", **options})

    def command(
        self, name: str | None = None, **options: Any
    ) -> Callable[[CommandFunctionType], CommandFunctionType]:
        """As in typer; `epilog` takes the result of `examples`."""
        return super().command(name, **{"cls": Command, **options})


def _unwrapped(text: str | None) -> str | None:
    """One line per paragraph, to be wrapped to the screen."""
    return None if text is None else "\n\n".join(_joined(part) for part in text.split("\n\n"))


def _joined(part: str) -> str:
    """The part on one line, with its no-break spaces."""
    return re.sub(r"[ \n]+", " ", part.strip(" \n"))


def _wrapped(text: str, width: int) -> str:
    """Paragraphs wrapped to `width`. Rich would break lines at no-break spaces, too."""
    parts = (_joined(part) for part in text.split("\n\n"))
    lines = (textwrap.fill(part, width, break_on_hyphens=False, break_long_words=False) for part in parts)
    return "\n\n".join(lines).replace("\xa0", " ")


def _print(shown_examples: Examples, console: Console) -> None:
    """Print each command line unbroken, with its purpose beside it or, if one doesn't fit, below."""
    from rich.padding import Padding
    from rich.text import Text

    column = max(len(command) for command, _ in shown_examples.lines) + 2
    beside = all(3 + column + len(purpose) < console.width for _, purpose in shown_examples.lines)
    console.print(Text("\n Examples", "bold"))
    for command, purpose in shown_examples.lines:
        if beside:
            console.print(Text.assemble("   ", (command.ljust(column), "cyan"), (purpose, "dim")))
        else:
            console.print(Padding(Text(command, "cyan"), (0, 0, 0, 3)))
            console.print(Padding(Text(purpose, "dim"), (0, 1, 0, 7)))
    if shown_examples.after:
        console.print(Padding(Text(_wrapped(shown_examples.after, console.width - 2)), (1, 1, 0, 1)))
    console.print()
