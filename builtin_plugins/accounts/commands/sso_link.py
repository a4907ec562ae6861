"""`platformctl sso-link`: approvals to link local accounts with the identity provider (spec 3.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.accounts import Username
from cli.options import AsJson
from cli.texts import App, examples

if TYPE_CHECKING:
    from kernel.sdk import Account
    from kernel.sdk.accounts import LinkApproval

app = App(
    no_args_is_help=True,
    help=(
        "Let people keep their local account when they sign in through the identity provider. "
        "Without an approval, a new account is created for them, even if a local account has the same name."
    ),
    epilog=examples(
        ("platformctl sso-link approve ada", "the next SSO sign-in takes over the account"),
        ("platformctl sso-link revoke ada", "withdraw an approval that was not used yet"),
        ("platformctl sso-link list", "approvals that were not used yet"),
    ),
)


@app.command(
    epilog=examples(
        ("platformctl sso-link approve ada", "works once"),
        ("platformctl sso-link approve ada --identity ada@corp.example", "where names are e-mail addresses"),
        after="Linking ends the account's sessions and removes its password. Its role and e-mail "
        "then come from the identity provider, and it is no longer a Platform Admin.",
    )
)
def approve(
    username: Username,
    identity: Annotated[
        str | None,
        typer.Option(
            help="Name, e-mail address or subject that the provider sends, if not the account's name.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Allow the next SSO sign-in with this name to take over the local account."""
    from cli import console, running

    account, changed = running.run(_approve(username, identity))
    if as_json:
        _print_change(account, changed, approved=True)
    elif changed:
        named = identity or account.username
        console.done(f"The next SSO sign-in as '{named}' takes over '{account.username}' (id {account.id})")
    else:
        console.note(f"'{account.username}' is already approved; nothing was changed")


@app.command(
    epilog=examples(("platformctl sso-link revoke ada", "withdraws the approval, not an existing link"))
)
def revoke(username: Username, as_json: AsJson = False) -> None:
    """Withdraw an approval that was not used yet."""
    from cli import console, running

    account, changed = running.run(_withdraw(username))
    if as_json:
        _print_change(account, changed, approved=False)
    elif changed:
        console.done(f"'{account.username}' is no longer approved")
    else:
        console.note(f"'{account.username}' has no approval; nothing was changed")


async def _approve(username: str, identity: str | None) -> tuple[Account, bool]:
    from builtin_plugins.accounts import link_approvals
    from builtin_plugins.accounts.commands.showing import opened_accounts
    from cli.auditing import ORIGIN

    async with opened_accounts() as platform:
        return await link_approvals.approve(platform, username, ORIGIN, identity)


async def _withdraw(username: str) -> tuple[Account, bool]:
    from builtin_plugins.accounts import link_approvals
    from builtin_plugins.accounts.commands.showing import opened_accounts
    from cli.auditing import ORIGIN

    async with opened_accounts() as platform:
        return await link_approvals.withdraw(platform, username, ORIGIN)


def _print_change(account: Account, changed: bool, *, approved: bool) -> None:
    from cli import console

    console.print_json(
        {"id": account.id, "username": account.username, "approved": approved, "changed": changed}
    )


@app.command(name="list", epilog=examples(("platformctl sso-link list --json", "as JSON")))
def show(
    username: Annotated[str | None, typer.Argument(help="Show only this account's approval.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the approvals that were not used yet."""
    from cli import console, running

    approvals = running.run(_list(username))
    if as_json:
        items = [
            {
                "id": a.id,
                "username": a.username,
                "email": a.email,
                "identity": approval.identity,
                "approved_at": approval.created_at,
            }
            for a, approval in approvals
        ]
        console.print_json({"items": items, "total": len(items)})
        return
    rows = [
        (
            a.id,
            a.username,
            a.email,
            approval.identity or a.username,
            f"{approval.created_at:%Y-%m-%d %H:%M} UTC",
        )
        for a, approval in approvals
    ]
    console.print_table(
        ("id", "username", "email", "identity", "approved"), rows, "There are no unused approvals"
    )


async def _list(username: str | None) -> list[tuple[Account, LinkApproval]]:
    from builtin_plugins.accounts import link_approvals
    from builtin_plugins.accounts.commands.showing import find_account, opened_accounts

    async with opened_accounts() as platform:
        approvals = await link_approvals.pending(platform)
        if username is None:
            return approvals
        owner = await find_account(platform, username)
        return [(account, approval) for account, approval in approvals if account.id == owner.id]
