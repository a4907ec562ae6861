"""`platformctl platform-admin`: Platform Admins, managed by the operator (spec 5.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.accounts import Username
from cli.options import AsJson
from cli.texts import App, examples

if TYPE_CHECKING:
    from datetime import datetime

    from kernel.sdk import Account

app = App(
    no_args_is_help=True,
    help=(
        "Platform Admins manage the accounts of all organizations. On a new installation, the "
        "first administrator to sign in becomes one. If there is none, an administrator can claim "
        "a setup code. A running platform picks up changes at once."
    ),
    epilog=examples(
        ("platformctl platform-admin grant ada", "works even if there is no Platform Admin left"),
        ("platformctl platform-admin revoke ada", "ends all of ada's sessions"),
        ("platformctl platform-admin list", "list the Platform Admins"),
        ("platformctl platform-admin setup-code", "a code that makes an administrator Platform Admin"),
    ),
)


@app.command(epilog=examples(("platformctl platform-admin grant ada", "any active account")))
def grant(username: Username, as_json: AsJson = False) -> None:
    """Make an account a Platform Admin. Its token shows it after the next refresh or sign-in."""
    from cli import console, running

    account, changed = running.run(_grant(username))
    if as_json:
        _print_change(account, changed)
    elif changed:
        console.done(
            f"{account.username} is now a Platform Admin; tokens show it after the next refresh or sign-in"
        )
    else:
        console.note(f"{account.username} is already a Platform Admin; nothing was changed")


async def _grant(username: str) -> tuple[Account, bool]:
    from builtin_plugins.accounts.commands.showing import opened_accounts
    from builtin_plugins.accounts.platform_admins import PLATFORM_ADMINS
    from cli.auditing import ORIGIN

    async with opened_accounts() as platform:
        return await platform.resource(PLATFORM_ADMINS).grant(username, ORIGIN)


@app.command(
    epilog=examples(
        ("platformctl platform-admin revoke ada", "ada must sign in again"),
        after="The last one can be revoked too; 'platformctl platform-admin grant' makes another.",
    )
)
def revoke(username: Username, as_json: AsJson = False) -> None:
    """Take Platform Admin away from an account, and end all of its sessions."""
    from cli import console, running

    account, changed, left = running.run(_revoke(username))
    if as_json:
        _print_change(account, changed)
    elif changed:
        console.done(
            f"{account.username} is no longer a Platform Admin; all sessions of the account have ended"
        )
    else:
        console.note(f"{account.username} is not a Platform Admin; nothing was changed")
    if changed and not left:
        console.warn(
            "There is no active Platform Admin left. To make one: platformctl platform-admin grant NAME"
        )


async def _revoke(username: str) -> tuple[Account, bool, bool]:
    from builtin_plugins.accounts.commands.showing import opened_accounts
    from builtin_plugins.accounts.platform_admins import PLATFORM_ADMINS
    from cli.auditing import ORIGIN

    async with opened_accounts() as platform:
        admins = platform.resource(PLATFORM_ADMINS)
        account, changed = await admins.revoke(username, ORIGIN)
        return account, changed, any(left.is_active for left in await admins.list())


def _print_change(account: Account, changed: bool) -> None:
    from builtin_plugins.accounts.commands.showing import account_row
    from cli import console

    console.print_json(account_row(account, changed=changed))


@app.command(name="list", epilog=examples(("platformctl platform-admin list --json", "as JSON")))
def show(as_json: AsJson = False) -> None:
    """List the Platform Admins."""
    from builtin_plugins.accounts.commands.showing import account_row, state
    from cli import console, running

    admins, remedy = running.run(_list())
    if as_json:
        console.print_json({"items": [account_row(account) for account in admins], "total": len(admins)})
        return
    rows = [(a.id, a.username, a.email, a.role, state(a)) for a in admins]
    console.print_table(
        ("id", "username", "email", "role", "state"), rows, f"There is no Platform Admin. {remedy}"
    )


async def _list() -> tuple[list[Account], str]:
    from builtin_plugins.accounts.commands.showing import opened_accounts
    from builtin_plugins.accounts.platform_admins import PLATFORM_ADMINS
    from builtin_plugins.accounts.setup_codes import SETUP_CODES

    async with opened_accounts() as platform:
        admins = platform.resource(PLATFORM_ADMINS)
        if await platform.resource(SETUP_CODES).is_in_use():
            remedy = (
                "Make one with 'platformctl platform-admin grant NAME', or issue a code with 'setup-code'"
            )
        elif await admins.awaits_first():
            remedy = "The first administrator to sign in becomes the Platform Admin"
        else:
            remedy = "Make one with 'platformctl platform-admin grant NAME'"
        return await admins.list(), remedy


@app.command(
    name="setup-code",
    epilog=examples(
        ("platformctl platform-admin setup-code", "prints the code, once"),
        after="A signed-in instance administrator enters it in the web client, or sends it to "
        "POST /v1/auth/platform-admin/claim. It works once, for 24 hours, and replaces earlier "
        "codes. No code is issued on a new installation (none is needed), while there is a "
        "Platform Admin, or after the first grant or claim.",
    ),
)
def setup_code(as_json: AsJson = False) -> None:
    """Issue a code with which an administrator can become Platform Admin if there is none."""
    from cli import console, running
    from cli.accounts import print_once

    code, expires_at = running.run(_issue())
    if as_json:
        console.print_json({"code": code, "expires_at": expires_at.isoformat(timespec="seconds")})
        return
    console.note(
        f"for one active administrator, until {expires_at:%Y-%m-%d %H:%M} UTC; earlier codes no longer work"
    )
    print_once("code", code)


async def _issue() -> tuple[str, datetime]:
    from builtin_plugins.accounts.commands.showing import opened_accounts
    from builtin_plugins.accounts.setup_codes import SETUP_CODES
    from cli.auditing import ORIGIN

    async with opened_accounts() as platform:
        return await platform.resource(SETUP_CODES).issue(ORIGIN)
