"""`platformctl sso-link`: approvals to link local accounts with the identity provider (spec 3.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.accounts import Username
from cli.options import AsJson
from cli.texts import examples

if TYPE_CHECKING:
    from kernel.auth.models import Account, LinkApproval

app = typer.Typer(
    rich_markup_mode="rich",
    no_args_is_help=True,
    help=(
        "Let a person keep a local account when signing in through the identity provider. Without an "
        "approval, whoever comes from there with the name of a local account gets an account apart."
    ),
    epilog=examples(
        ("platformctl sso-link approve ada", "the next SSO sign-in takes the account"),
        ("platformctl sso-link revoke ada", "before that happened"),
        ("platformctl sso-link list", "what is approved and not yet used"),
    ),
)


@app.command(
    epilog=examples(
        ("platformctl sso-link approve ada", "works once"),
        after="The link ends the account's sessions, removes its password and takes role and e-mail from\n"
        "the identity provider; a Platform Admin is one no longer.",
    )
)
def approve(username: Username, as_json: AsJson = False) -> None:
    """Approve that the next SSO sign-in with this name takes the local account."""
    from cli import console, running

    account, changed = running.run(_change(username, approve=True))
    if as_json:
        _print_change(account, changed, approved=True)
    elif changed:
        console.done(f"The next SSO sign-in as '{account.username}' takes the account (id {account.id})")
    else:
        console.note(f"'{account.username}' is approved already; nothing was changed")


@app.command(epilog=examples(("platformctl sso-link revoke ada", "the approval, not a link that is made")))
def revoke(username: Username, as_json: AsJson = False) -> None:
    """Take an approval back that no sign-in has used yet."""
    from cli import console, running

    account, changed = running.run(_change(username, approve=False))
    if as_json:
        _print_change(account, changed, approved=False)
    elif changed:
        console.done(f"'{account.username}' is not approved any more")
    else:
        console.note(f"'{account.username}' has no approval; nothing was changed")


async def _change(username: str, *, approve: bool) -> tuple[Account, bool]:
    from cli.accounts import opened_accounts
    from cli.auditing import ORIGIN
    from kernel.auth import link_approvals

    async with opened_accounts() as platform:
        change = link_approvals.approve if approve else link_approvals.withdraw
        return await change(platform, username, ORIGIN)


def _print_change(account: Account, changed: bool, *, approved: bool) -> None:
    from cli import console

    console.print_json(
        {"id": account.id, "username": account.username, "approved": approved, "changed": changed}
    )


@app.command(name="list", epilog=examples(("platformctl sso-link list --json", "for a program")))
def show(
    username: Annotated[str | None, typer.Argument(help="Only the approval of this account.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the approvals that no sign-in has used yet."""
    from cli import console, running

    found = running.run(_list(username))
    if as_json:
        items = [
            {"id": a.id, "username": a.username, "email": a.email, "approved_at": approval.created_at}
            for a, approval in found
        ]
        console.print_json({"items": items, "total": len(items)})
        return
    rows = [(a.id, a.username, a.email, f"{made.created_at:%Y-%m-%d %H:%M} UTC") for a, made in found]
    console.print_table(("id", "username", "email", "approved"), rows, "No approval waits for a sign-in")


async def _list(username: str | None) -> list[tuple[Account, LinkApproval]]:
    from cli.accounts import find_account, opened_accounts
    from kernel.auth import link_approvals

    async with opened_accounts() as platform:
        found = await link_approvals.pending(platform)
        if username is None:
            return found
        wanted = await find_account(platform, username)
        return [(account, approval) for account, approval in found if account.id == wanted.id]
