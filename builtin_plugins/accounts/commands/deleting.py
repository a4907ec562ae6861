"""`platformctl users delete`: what it asks, does and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from builtin_plugins.accounts.errors import StillShared
    from kernel.sdk import Account


def delete(username: str, heir: str | None, *, yes: bool, as_json: bool) -> None:
    """Delete the account; what others use goes to the account called `heir`."""
    from cli import console, running

    account = running.run(_find(username))
    if not yes:
        typer.confirm(
            f"Delete {account.username} <{account.email}> and all of the account's knowledge bases,"
            " pipelines and conversations, for good?",
            abort=True,
        )
    job_id = running.run(_delete(account.id, heir))
    if as_json:
        console.print_json({"id": account.id, "username": account.username, "job_id": job_id})
        return
    console.done(f"{account.username} is deleted; the name and the e-mail address are free again")
    console.note(
        f"A worker removes what belonged to the account (id {account.id}): platformctl jobs show {job_id}"
    )


async def _find(username: str) -> Account:
    from builtin_plugins.accounts.commands.showing import find_account, opened_accounts

    async with opened_accounts(kernel_only=True) as platform:
        return await find_account(platform, username)


async def _delete(account_id: int, heir: str | None) -> str:
    """By id: since the confirmation, somebody else may have taken the name."""
    from builtin_plugins.accounts.commands.showing import find_account, opened_accounts
    from builtin_plugins.accounts.deletion import delete_account
    from builtin_plugins.accounts.errors import StillShared
    from cli.auditing import ORIGIN
    from cli.failures import Refused
    from kernel.sdk import Unprocessable
    from kernel.sdk.accounts import operator_of

    async with opened_accounts() as platform:
        heir_id = None if heir is None else (await find_account(platform, heir)).id
        try:
            return await delete_account(operator_of(platform, ORIGIN), account_id, heir_id)
        except StillShared as error:
            raise _refusal(error, heir) from None
        except Unprocessable:
            raise Refused(f"{heir} can't be the heir", "Name another active account.") from None


def _refusal(error: StillShared, heir: str | None) -> Exception:
    from cli.failures import Refused

    assert isinstance(error.detail, dict)
    things = "; ".join(
        f"{one['kind']} '{one['name']}' ({one['shared_with']})" for one in error.detail["shared"]
    )
    if heir is not None:
        return Refused(
            f"{heir} can't own what others use: {things}",
            "Name somebody in these teams and organizations: --heir NAME",
        )
    return Refused(
        f"Others use what the account shares: {things}", "Name the account that takes it over: --heir NAME"
    )
