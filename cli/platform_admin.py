"""`platformctl platform-admin`: the operator's way to Platform Admins (spec 5.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from cli.accounts import Username
from cli.options import AsJson
from cli.texts import examples

if TYPE_CHECKING:
    from datetime import datetime

    from kernel.auth.models import Account

app = typer.Typer(
    rich_markup_mode="rich",
    no_args_is_help=True,
    help=(
        "Platform Admins administer the accounts of all organizations. On a fresh install the first "
        "administrator to sign in becomes one; where nobody is one, whoever claims a setup code. A platform "
        "that runs hears of each change at once."
    ),
    epilog=examples(
        ("platformctl platform-admin grant ada", "also when nobody is one any more"),
        ("platformctl platform-admin revoke ada", "ends all of ada's sessions"),
        ("platformctl platform-admin list", "who is one"),
        ("platformctl platform-admin setup-code", "for an administrator to claim, where nobody is one"),
    ),
)


@app.command(epilog=examples(("platformctl platform-admin grant ada", "any active account")))
def grant(username: Username, as_json: AsJson = False) -> None:
    """Make an account a Platform Admin. Its token says so at the next refresh or sign-in."""
    from cli import console, running

    account, changed = running.run(_grant(username))
    if as_json:
        _print_change(account, changed)
    elif changed:
        console.done(f"{account.username} is a Platform Admin; the next refresh or sign-in shows it")
    else:
        console.note(f"{account.username} is a Platform Admin already; nothing was changed")


async def _grant(username: str) -> tuple[Account, bool]:
    from cli.accounts import opened_accounts
    from cli.auditing import ORIGIN

    async with opened_accounts() as platform:
        return await platform.platform_admins.grant(username, ORIGIN)


@app.command(
    epilog=examples(
        ("platformctl platform-admin revoke ada", "ada signs in again, as an ordinary account"),
        after="The last one can be revoked too; 'platformctl platform-admin grant' makes another.",
    )
)
def revoke(username: Username, as_json: AsJson = False) -> None:
    """Make an account a Platform Admin no longer, and end all of its sessions."""
    from cli import console, running

    account, changed, left = running.run(_revoke(username))
    if as_json:
        _print_change(account, changed)
    elif changed:
        console.done(f"{account.username} is a Platform Admin no longer; the account's sessions have ended")
    else:
        console.note(f"{account.username} is no Platform Admin; nothing was changed")
    if changed and not left:
        console.warn("No active Platform Admin is left. Make one: platformctl platform-admin grant NAME")


async def _revoke(username: str) -> tuple[Account, bool, bool]:
    from cli.accounts import opened_accounts
    from cli.auditing import ORIGIN

    async with opened_accounts() as platform:
        account, changed = await platform.platform_admins.revoke(username, ORIGIN)
        return account, changed, any(left.is_active for left in await platform.platform_admins.list())


def _print_change(account: Account, changed: bool) -> None:
    from cli import console
    from cli.accounts import shown

    console.print_json(shown(account, changed=changed))


@app.command(name="list", epilog=examples(("platformctl platform-admin list --json", "for a program")))
def show(as_json: AsJson = False) -> None:
    """List the Platform Admins."""
    from cli import console, running
    from cli.accounts import shown, state

    admins, remedy = running.run(_list())
    if as_json:
        console.print_json({"items": [shown(account) for account in admins], "total": len(admins)})
        return
    rows = [(a.id, a.username, a.email, a.role, state(a)) for a in admins]
    console.print_table(
        ("id", "username", "email", "role", "state"), rows, f"There is no Platform Admin. {remedy}"
    )


async def _list() -> tuple[list[Account], str]:
    from cli.accounts import opened_accounts

    async with opened_accounts() as platform:
        if await platform.setup_codes.is_in_use():
            remedy = "Make one: platformctl platform-admin grant NAME, or setup-code for one who claims"
        elif await platform.platform_admins.awaits_first():
            remedy = "The first administrator to sign in becomes one"
        else:
            remedy = "Make one: platformctl platform-admin grant NAME"
        return await platform.platform_admins.list(), remedy


@app.command(
    name="setup-code",
    epilog=examples(
        ("platformctl platform-admin setup-code", "prints the code, once"),
        after="An instance administrator claims it, signed in, in the web client or with\n"
        "POST /v1/auth/platform-admin/claim. It works once, for 24 hours, and voids earlier codes.\n"
        "Refused on a fresh install, which needs none, while there is a Platform Admin, and after\n"
        "the first grant or claim.",
    ),
)
def setup_code(as_json: AsJson = False) -> None:
    """Issue the code that makes an administrator the Platform Admin of an install that has none."""
    from cli import console, running
    from cli.accounts import print_once

    code, expires_at = running.run(_issue())
    if as_json:
        console.print_json({"code": code, "expires_at": expires_at.isoformat(timespec="seconds")})
        return
    console.note(
        f"for one active administrator, until {expires_at:%Y-%m-%d %H:%M} UTC; earlier codes are void"
    )
    print_once("code", code)


async def _issue() -> tuple[str, datetime]:
    from cli.accounts import opened_accounts
    from cli.auditing import ORIGIN

    async with opened_accounts() as platform:
        return await platform.setup_codes.issue(ORIGIN)
