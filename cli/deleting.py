"""`platformctl users delete`: what it asks, does and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from kernel.auth.errors import StillShared
    from kernel.auth.models import Account


def delete(username: str, heir: str | None, *, yes: bool, as_json: bool) -> None:
    """Delete the account; what others use goes to the account called `heir`."""
    from cli import console, running

    account = running.run(_find(username))
    if not yes:
        typer.confirm(
            f"Delete {account.username} <{account.email}> with all of the account's knowledge bases,"
            " pipelines and conversations, for good?",
            abort=True,
        )
    job_id = running.run(_delete(username, heir))
    if as_json:
        console.print_json({"id": account.id, "username": account.username, "job_id": job_id})
        return
    console.done(f"{account.username} is deleted; the name and the e-mail address are free again")
    console.note(
        f"A worker removes what belonged to the account (id {account.id}): platformctl jobs show {job_id}"
    )


async def _find(username: str) -> Account:
    from cli.accounts import find_account, opened_accounts

    async with opened_accounts(kernel_only=True) as platform:
        return await find_account(platform, username)


async def _delete(username: str, heir: str | None) -> str:
    from cli.accounts import find_account, opened_accounts
    from cli.auditing import ORIGIN
    from kernel.auth.callers import operator_of
    from kernel.auth.deletion import delete_account
    from kernel.auth.errors import StillShared

    async with opened_accounts() as platform:
        account = await find_account(platform, username)
        heir_id = None if heir is None else (await find_account(platform, heir)).id
        try:
            return await delete_account(operator_of(platform, ORIGIN), account.id, heir_id)
        except StillShared as error:
            raise _refusal(error) from None


def _refusal(error: StillShared) -> Exception:
    from cli.failures import Refused

    assert isinstance(error.detail, dict)
    things = "; ".join(
        f"{one['kind']} '{one['name']}' ({one['shared_with']})" for one in error.detail["shared"]
    )
    return Refused(
        f"Others use what the account shares: {things}", "Name the account that gets it: --heir NAME"
    )
