"""`platformctl users`: accounts, managed by the operator."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.accounts import Username
from cli.options import AsJson
from cli.texts import App, examples

if TYPE_CHECKING:
    from builtin_plugins.accounts.schemas import RegisterRequest
    from kernel.sdk import Account

app = App(
    no_args_is_help=True,
    help=(
        "Create, list and manage accounts directly in the database. The platform does not have to "
        "be running; if it is, it picks up changes at once."
    ),
    epilog=examples(
        ("platformctl users create ada --admin", "asks for a password"),
        ("platformctl users create bot --generate", "generates a password"),
        ("platformctl users list --json", "as JSON"),
        ("platformctl users reset-password bob", "prints a temporary password"),
        ("platformctl users deactivate bob", "ends all of bob's sessions"),
        ("platformctl users delete bob", "removes bob and everything that belongs to the account"),
    ),
)

# Any valid password, to check name and address before asking for the real one.
_ANY_PASSWORD = "x" * 12

PasswordFromStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from standard input.")
]


@app.command(
    epilog=examples(
        ("platformctl users create ada --admin", "an administrator"),
        ("platformctl users create ada --email ada@example.org", "asks for a password"),
        ("platformctl users create bot --generate", "prints a password, once"),
        ("pass show bot | platformctl users create bot --password-stdin", "reads it from a pipe"),
    )
)
def create(
    username: Annotated[str, typer.Argument(help="1 to 50 letters, digits, '_', '.' or '-'.")],
    email: Annotated[
        str | None, typer.Option(help="E-mail address (default: NAME@localhost.localdomain).")
    ] = None,
    admin: Annotated[
        bool, typer.Option("--admin", help="Make the account an instance administrator.")
    ] = False,
    password_stdin: PasswordFromStdin = False,
    generate: Annotated[
        bool, typer.Option("--generate", help="Generate a password and print it once.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Create an account. The password is read from a prompt, never from an argument."""
    from builtin_plugins.accounts.commands.showing import account_row
    from cli import accounts, console, running

    if password_stdin and generate:
        raise typer.BadParameter("choose one of --password-stdin and --generate", param_hint="--generate")
    address = email or f"{username}@localhost.localdomain"
    _checked(username, address, _ANY_PASSWORD)
    running.run(_refuse_taken(username, address))
    password = secrets.token_urlsafe(16) if generate else accounts.read_password(from_stdin=password_stdin)
    request = _checked(username, address, password)
    account, first = running.run(_create(request, "admin" if admin else "user"))
    if as_json:
        console.print_json(account_row(account) | ({"password": password} if generate else {}))
        return
    console.done(f"{account.username} <{account.email}> can sign in as {_title(account)} (id {account.id})")
    if first:
        console.note(
            "The first administrator to sign in to this new installation becomes its Platform Admin."
        )
    if generate:
        accounts.print_once("password", password)


def _checked(username: str, email: str, password: str) -> RegisterRequest:
    """Apply the rules of `POST /v1/auth/register`; a violation is a usage error."""
    from pydantic import ValidationError

    from builtin_plugins.accounts.schemas import RegisterRequest
    from cli.accounts import unfit

    try:
        return RegisterRequest(username=username, email=email, password=password)
    except ValidationError as error:
        raise unfit(error) from None


async def _refuse_taken(username: str, email: str) -> None:
    from builtin_plugins.accounts.accounts import ACCOUNTS
    from builtin_plugins.accounts.commands.showing import opened_accounts

    async with opened_accounts(kernel_only=True) as platform:
        await platform.resource(ACCOUNTS).refuse_taken(username, email)


async def _create(request: RegisterRequest, role: str) -> tuple[Account, bool]:
    """The account, and whether signing in could make it the first Platform Admin."""
    from builtin_plugins.accounts.accounts import ACCOUNTS
    from builtin_plugins.accounts.commands.showing import opened_accounts
    from builtin_plugins.accounts.platform_admins import PLATFORM_ADMINS
    from cli.auditing import ORIGIN

    async with opened_accounts() as platform:
        account = await platform.resource(ACCOUNTS).register(
            request.username, request.email, request.password, role=role, origin=ORIGIN
        )
        return account, await platform.resource(PLATFORM_ADMINS).may_be_first(account)


@app.command(name="list", epilog=examples(("platformctl users list", "all accounts")))
def show_all(
    limit: Annotated[int, typer.Option(min=1, help="Number of accounts to show.")] = 500,
    offset: Annotated[int, typer.Option(min=0, help="Number of accounts to skip.")] = 0,
    as_json: AsJson = False,
) -> None:
    """List accounts."""
    from builtin_plugins.accounts.commands.showing import account_row, state
    from cli import console, running

    accounts, total = running.run(_list(limit, offset))
    if as_json:
        items = [account_row(account) for account in accounts]
        console.print_json({"items": items, "total": total, "limit": limit, "offset": offset})
        return
    rows = [
        (a.id, a.username, a.email, a.role, "yes" if a.platform_admin else "", state(a)) for a in accounts
    ]
    console.print_table(
        ("id", "username", "email", "role", "platform admin", "state"),
        rows,
        "There are no accounts yet. To create one: platformctl users create NAME --admin",
    )
    if total > offset + len(accounts):
        console.note(f"{len(accounts)} of {total}; see --limit and --offset")


async def _list(limit: int, offset: int) -> tuple[list[Account], int]:
    from builtin_plugins.accounts.accounts import ACCOUNTS
    from builtin_plugins.accounts.commands.showing import opened_accounts

    async with opened_accounts() as platform:
        return await platform.resource(ACCOUNTS).list(limit=limit, offset=offset)


@app.command(epilog=examples(("platformctl users show ada", "details of one account")))
def show(username: Username, as_json: AsJson = False) -> None:
    """Show an account's roles, sign-in method and organizations."""
    from cli import console, running

    record = running.run(_describe(username))
    if as_json:
        console.print_json(record)
        return
    memberships = ", ".join(f"{item['name']} ({item['role']})" for item in record["organizations"])
    console.print_facts(
        [
            ("id", str(record["id"])),
            ("username", record["username"]),
            ("email", record["email"]),
            ("state", "active" if record["is_active"] else "deactivated"),
            ("role", record["role"]),
            ("platform admin", "yes" if record["platform_admin"] else "no"),
            ("signs in", _way(record)),
            ("organizations", memberships),
            ("created", f"{record['created_at']:%Y-%m-%d %H:%M} UTC"),
        ]
    )


def _way(account: dict[str, Any]) -> str:
    if account["sso"]:
        return "through the identity provider"
    way = "with a temporary password" if account["must_change_password"] else "with a password"
    return f"{way}; the next SSO sign-in takes over the account" if account["link_approved"] else way


async def _describe(username: str) -> dict[str, Any]:
    from builtin_plugins.accounts import hookspecs, link_approvals
    from builtin_plugins.accounts.commands.showing import account_row, find_account, opened_accounts
    from builtin_plugins.accounts.guards import is_sso

    async with opened_accounts() as platform:
        account = await find_account(platform, username)
        answer = await platform.hooks.ask(
            hookspecs.find_memberships, platform=platform, account_ids=[account.id]
        )
        memberships = answer or {}
        approved = {approved.id for approved, _ in await link_approvals.pending(platform)}
        return account_row(
            account,
            must_change_password=account.must_change_password,
            sso=is_sso(account),
            link_approved=account.id in approved,
            organizations=[item.model_dump() for item in memberships.get(account.id, ())],
        )


@app.command(
    name="reset-password",
    epilog=examples(
        ("platformctl users reset-password bob", "prints a temporary password"),
        ("platformctl users reset-password bob --password-stdin", "reads it from a pipe"),
        after="The password must be changed after the next sign-in. All sessions of the account end.",
    ),
)
def reset_password(
    username: Username, password_stdin: PasswordFromStdin = False, as_json: AsJson = False
) -> None:
    """Give an account a temporary password and end its sessions. Not for SSO accounts."""
    from cli import accounts, console, running

    running.run(_find(username))
    new_password = _new_password() if password_stdin else None
    account, password = running.run(_reset(username, new_password))
    if as_json:
        extra = {} if new_password else {"temporary_password": password}
        console.print_json({"id": account.id, "username": account.username, **extra})
        return
    console.done(f"{account.username} has a temporary password; all sessions of the account have ended")
    if not new_password:
        accounts.print_once("password", password)


async def _find(username: str) -> None:
    """Raise Missing, before a password is asked for, if nobody has the name."""
    from builtin_plugins.accounts.commands.showing import find_account, opened_accounts

    async with opened_accounts(kernel_only=True) as platform:
        await find_account(platform, username)


def _new_password() -> str:
    from pydantic import ValidationError

    from builtin_plugins.accounts.schemas import ResetPasswordRequest
    from cli.accounts import read_password, unfit

    try:
        password = ResetPasswordRequest(mode="set", new_password=read_password(from_stdin=True)).new_password
    except ValidationError as error:
        raise unfit(error) from None
    return password or ""


async def _reset(username: str, new_password: str | None) -> tuple[Account, str]:
    from builtin_plugins.accounts.administration import ADMINISTRATION
    from builtin_plugins.accounts.commands.showing import find_account, opened_accounts
    from cli.auditing import ORIGIN
    from kernel.sdk.accounts import operator_of

    async with opened_accounts() as platform:
        account = await find_account(platform, username)
        password = await platform.resource(ADMINISTRATION).reset_password(
            operator_of(platform, ORIGIN), account.id, "set" if new_password else "generate", new_password
        )
        return account, password


@app.command(
    epilog=examples(
        ("platformctl users deactivate bob", "keeps the account and its data"),
        after="Refused for the last active Platform Admin, administrator, or owner of an organization.",
    )
)
def deactivate(username: Username, as_json: AsJson = False) -> None:
    """Stop an account from signing in, and end all of its sessions."""
    _set_active(username, False, as_json)


@app.command(epilog=examples(("platformctl users activate bob", "earlier sessions stay ended")))
def activate(username: Username, as_json: AsJson = False) -> None:
    """Allow a deactivated account to sign in again."""
    _set_active(username, True, as_json)


@app.command(
    epilog=examples(
        ("platformctl users delete bob", "asks for confirmation"),
        ("platformctl users delete bob --heir ada", "ada becomes the owner of what bob shares with others"),
        after="Refused for the last Platform Admin, administrator, organization owner or team_admin, and"
        " while others use something the account owns, unless an heir is named.",
    )
)
def delete(
    username: Username,
    heir: Annotated[
        str | None, typer.Option(help="Name of the account that becomes the owner of what others use.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask for confirmation.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete an account and everything that belongs to it, for good."""
    from builtin_plugins.accounts.commands import deleting

    deleting.delete(username, heir, yes=yes, as_json=as_json)


def _set_active(username: str, is_active: bool, as_json: bool) -> None:
    from builtin_plugins.accounts.commands.showing import account_row
    from cli import console, running

    account, changed = running.run(_change_status(username, is_active))
    if as_json:
        console.print_json(account_row(account, changed=changed))
    elif not changed:
        word = "active" if is_active else "deactivated"
        console.note(f"{account.username} is already {word}; nothing was changed")
    elif is_active:
        console.done(f"{account.username} can sign in again")
    else:
        console.done(f"{account.username} can no longer sign in; all sessions of the account have ended")


async def _change_status(username: str, is_active: bool) -> tuple[Account, bool]:
    from builtin_plugins.accounts.administration import ADMINISTRATION
    from builtin_plugins.accounts.commands.showing import find_account, opened_accounts
    from cli.auditing import ORIGIN
    from kernel.sdk.accounts import operator_of

    async with opened_accounts() as platform:
        before = await find_account(platform, username)
        administration = platform.resource(ADMINISTRATION)
        account = await administration.set_active(operator_of(platform, ORIGIN), before.id, is_active)
        return account, before.is_active != is_active


def _title(account: Account) -> str:
    return "an administrator" if account.role == "admin" else "a user"
