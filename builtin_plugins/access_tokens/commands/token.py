"""`platformctl token`: personal access tokens for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.accounts import Username
from cli.options import AsJson
from cli.texts import App, examples

if TYPE_CHECKING:
    from datetime import datetime

    from builtin_plugins.access_tokens.schemas import (
        AccessTokenCreate,
        AccessTokenCreated,
        AccessTokenOfAccount,
        AccessTokenOut,
    )

app = App(
    no_args_is_help=True,
    help=(
        "Create, list and revoke personal access tokens directly in the database. The platform does not have "
        "to be running; if it is, it picks up changes at once."
    ),
    epilog=examples(
        ("platformctl token create ada --name indexer > token", "only the token goes to the file"),
        ("platformctl token list ada", "all of ada's tokens"),
        ("platformctl token revoke 7", "ends it at once"),
    ),
)


@app.command(
    epilog=examples(
        ("platformctl token create ada --name indexer > token", "only the token goes to the file"),
        ("platformctl token create ada --name chat --scope ask --days 90", "reads and asks, for 90 days"),
    )
)
def create(
    username: Username,
    name: Annotated[str, typer.Option(help="What the token is for.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(help="ask, tools or manage; can be repeated (default: all three)."),
    ] = None,
    days: Annotated[
        int | None, typer.Option(min=1, max=3650, help="Days until it expires (default: never).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a token for an account and print it to standard output, once."""
    from cli import accounts, console, running

    token = running.run(_create(username, _request_body(name, scope, days)))
    if as_json:
        console.print_json(token.model_dump())
        return
    ends = f"until {token.expires_at:%Y-%m-%d %H:%M} UTC" if token.expires_at else "does not expire"
    console.done(f"token {token.id} '{token.name}' of {username}: {', '.join(token.scopes)}, {ends}")
    accounts.print_once("token", token.token)


@app.command("list", epilog=examples(("platformctl token list ada", "the tokens of one account")))
def list_tokens(
    username: Annotated[str | None, typer.Argument(help="Name of an account (default: all).")] = None,
    as_json: AsJson = False,
) -> None:
    """List tokens, without their values."""
    from cli import console, running

    tokens = running.run(_list(username))
    if as_json:
        console.print_json([{**item.model_dump(), "username": name} for name, item in tokens])
        return
    rows = [
        (item.id, name, item.name, f"…{item.last_four}", " ".join(item.scopes), *_times(item))
        for name, item in tokens
    ]
    columns = ("id", "account", "name", "token", "scopes", "last used", "expires")
    console.print_table(columns, rows, "there are no tokens; 'platformctl token create' makes one")


@app.command(epilog=examples(("platformctl token revoke 7", "'platformctl token list' shows the ids")))
def revoke(
    token_id: Annotated[int, typer.Argument(metavar="ID", help="As 'platformctl token list' shows it.")],
) -> None:
    """Revoke a token. Programs that use it are refused within a moment."""
    from cli import console, running

    ended = running.run(_revoke(token_id))
    console.done(f"token {token_id} '{ended.name}' is revoked")


def _request_body(name: str, scopes: list[str] | None, days: int | None) -> AccessTokenCreate:
    """Apply the rules of `POST /v1/auth/tokens`; a violation is a usage error."""
    from datetime import UTC, datetime, timedelta

    from pydantic import ValidationError

    from builtin_plugins.access_tokens.schemas import ALL_SCOPES, AccessTokenCreate
    from cli.accounts import unfit

    if not set(scopes or ()).issubset(ALL_SCOPES):
        raise typer.BadParameter(f"choose from {', '.join(ALL_SCOPES)}", param_hint="--scope")
    body: dict[str, object] = {"name": name}
    body |= {"scopes": scopes} if scopes else {}
    body |= {"expires_at": datetime.now(UTC) + timedelta(days=days)} if days else {}
    try:
        return AccessTokenCreate.model_validate(body)
    except ValidationError as error:
        raise unfit(error) from None


async def _create(username: str, body: AccessTokenCreate) -> AccessTokenCreated:
    from builtin_plugins.access_tokens import service
    from builtin_plugins.accounts.api import find_by_username
    from cli.accounts import opened_accounts
    from cli.auditing import ORIGIN

    async with opened_accounts() as platform:
        account = await platform.database.read(find_by_username, username)
        return await platform.database.write(service.create, account.id, body, origin=ORIGIN)


async def _list(username: str | None) -> list[tuple[str, AccessTokenOfAccount]]:
    from builtin_plugins.access_tokens import service
    from builtin_plugins.accounts.api import find_by_username
    from cli.accounts import opened_accounts
    from kernel.sdk import ACCOUNT_STATES

    async with opened_accounts() as platform:
        account = None if username is None else await platform.database.read(find_by_username, username)
        account_id = None if account is None else account.id
        states = platform.resource(ACCOUNT_STATES)
        tokens = []
        for item in await platform.database.read(service.list_all, account_id):
            state = await states.get(item.account_id)
            tokens.append((state.username if state else str(item.account_id), item))
        return tokens


async def _revoke(token_id: int) -> AccessTokenOut:
    from builtin_plugins.access_tokens import service
    from builtin_plugins.access_tokens.errors import TokenNotFound
    from cli.accounts import opened_accounts
    from cli.auditing import ORIGIN
    from cli.failures import Missing

    async with opened_accounts() as platform:
        try:
            return await platform.database.write(service.revoke, token_id, None, ORIGIN)
        except TokenNotFound as error:
            raise Missing(str(error), "'platformctl token list' shows all tokens.") from None


def _times(item: AccessTokenOut) -> tuple[str, str]:
    """When it was last used and when it expires."""
    return _time(item.last_used_at), _time(item.expires_at)


def _time(value: datetime | None) -> str:
    return f"{value:%Y-%m-%d %H:%M}" if value else "never"
