"""Shared by the commands about accounts: opening the platform, reading passwords, reporting refusals."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pydantic import ValidationError

    from kernel.platform import Platform

Username = Annotated[str, typer.Argument(help="Name of the account; case does not matter.")]


@asynccontextmanager
async def opened_accounts(*, kernel_only: bool = False) -> AsyncIterator[Platform]:
    """The stored platform; its errors become a command's errors (exit codes 3 and 4)."""
    from cli import running
    from cli.failures import Missing, Refused
    from kernel.errors import Conflict, Forbidden, NotFound

    async with running.stored_platform(kernel_only=kernel_only) as platform:
        running.refuse_behind(platform)
        try:
            yield platform
        except NotFound as error:
            raise Missing(str(error), "'platformctl users list' shows all accounts.") from None
        except (Conflict, Forbidden) as error:
            raise Refused(str(error)) from None


def unfit(error: ValidationError) -> typer.BadParameter:
    """The usage error for a value that breaks the API's rules, without repeating the value."""
    from cli.broken_rules import plainly

    return typer.BadParameter(
        "; ".join(plainly(item) for item in error.errors(include_url=False, include_input=False))
    )


def read_password(*, from_stdin: bool) -> str:
    """A password from a prompt or standard input, never from the command line."""
    if from_stdin or not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    answer: str = typer.prompt("Password", hide_input=True, confirmation_prompt="Repeat for confirmation")
    return answer


def print_once(what: str, value: str) -> None:
    """Show a value that can't be shown again, alone on standard output so that it can be piped."""
    from cli import console

    console.note(f"This {what} is shown only once:")
    sys.stdout.write(value + "\n")
