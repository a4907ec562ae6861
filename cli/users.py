"""`platformctl users`: the operator's way to accounts."""

from __future__ import annotations

import secrets
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import AsJson
from cli.texts import examples

if TYPE_CHECKING:
    from kernel.auth.models import Account

app = typer.Typer(
    rich_markup_mode="rich",
    no_args_is_help=True,
    help="Create and list accounts, straight in the database: the platform need not run.",
    epilog=examples(
        ("platformctl users create ada --admin", "asks for a password"),
        ("platformctl users create bot --generate", "prints one, once"),
        ("platformctl users list --json", "for a program"),
    ),
)


@app.command(
    epilog=examples(
        ("platformctl users create ada --admin", "an administrator"),
        ("platformctl users create ada --email ada@example.org", "asks for a password"),
        ("platformctl users create bot --generate", "prints a password, once"),
        ("pass show bot | platformctl users create bot --password-stdin", "reads one"),
    )
)
def create(
    username: Annotated[str, typer.Argument(help="1 to 50 letters, digits, '_', '.' or '-'.")],
    email: Annotated[str | None, typer.Option(help="Address [default: NAME@localhost.localdomain].")] = None,
    admin: Annotated[bool, typer.Option("--admin", help="Make it an instance administrator.")] = False,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from standard input.")
    ] = False,
    generate: Annotated[bool, typer.Option("--generate", help="Make a password and print it, once.")] = False,
    as_json: AsJson = False,
) -> None:
    """Create an account. The password is asked for, never given on the command line."""
    from cli import console, running

    if password_stdin and generate:
        raise typer.BadParameter("choose one of --password-stdin and --generate", param_hint="--generate")
    given = _checked(
        username, email or f"{username}@localhost.localdomain", _password(password_stdin, generate)
    )
    account = running.run(_create(given, "admin" if admin else "user"))
    shown = _shown(account) | ({"password": given["password"]} if generate else {})
    if as_json:
        console.print_json(shown)
        return
    console.done(f"{account.username} <{account.email}> can sign in as {_title(account)} (id {account.id})")
    if generate:
        console.note("This password is shown once:")
        sys.stdout.write(given["password"] + "\n")


def _password(from_stdin: bool, generate: bool) -> str:
    if generate:
        return secrets.token_urlsafe(16)
    if from_stdin or not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    answer: str = typer.prompt("Password", hide_input=True, confirmation_prompt="Once more")
    return answer


def _checked(username: str, email: str, password: str) -> dict[str, str]:
    """The same rules as `POST /v1/auth/register`; a breach is wrong usage."""
    from pydantic import ValidationError

    from kernel.auth.schemas import RegisterRequest

    try:
        checked = RegisterRequest(username=username, email=email, password=password)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        text = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in found)
        raise typer.BadParameter(text) from None
    return checked.model_dump()


async def _create(given: dict[str, str], role: str) -> Account:
    from cli import running
    from cli.failures import Refused
    from kernel.auth.errors import AlreadyExists

    async with running.stored_platform() as platform:
        try:
            return await platform.accounts.register(**given, role=role, origin={"user_agent": "platformctl"})
        except AlreadyExists as error:
            raise Refused(str(error), "'platformctl users list' shows who there is.") from None


@app.command(name="list", epilog=examples(("platformctl users list", "who can sign in")))
def show(
    limit: Annotated[int, typer.Option(min=1, help="How many.")] = 500,
    offset: Annotated[int, typer.Option(min=0, help="How many to skip.")] = 0,
    as_json: AsJson = False,
) -> None:
    """List accounts."""
    from cli import console, running

    accounts, total = running.run(_list(limit, offset))
    if as_json:
        items = [_shown(account) for account in accounts]
        console.print_json({"items": items, "total": total, "limit": limit, "offset": offset})
        return
    rows = [(a.id, a.username, a.email, a.role, "" if a.is_active else "deactivated") for a in accounts]
    console.print_table(
        ("id", "username", "email", "role", "state"),
        rows,
        "There is no account yet: platformctl users create NAME --admin",
    )
    if total > offset + len(accounts):
        console.note(f"{len(accounts)} of {total}; see --limit and --offset")


async def _list(limit: int, offset: int) -> tuple[list[Account], int]:
    from cli import running

    async with running.stored_platform() as platform:
        return await platform.accounts.list(limit=limit, offset=offset)


def _shown(account: Account) -> dict[str, Any]:
    names = ("id", "username", "email", "role", "is_active", "platform_admin", "created_at")
    return {name: getattr(account, name) for name in names}


def _title(account: Account) -> str:
    return "an administrator" if account.role == "admin" else "a user"
