"""The durable job that has every plugin remove what belonged to a deleted account, until all have done so."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.accounts import hookspecs
from kernel.sdk import Account, Job, LongJob, NoPayload, PlatformError, Progress, Unit, is_machine_fault
from kernel.sdk.accounts import AccountRemoval
from kernel.sdk.jobs import UNDER_WAY, JobRecord

if TYPE_CHECKING:
    from kernel.sdk import Platform

_NAME = "kernel.remove_account"

_REQUESTS_END = timedelta(hours=1)
"""How long after the deletion a request by the account may still store something."""


class NotRemoved(PlatformError):
    """Plugins failed to remove their part."""

    code = "not_removed"


class AccountToRemove(BaseModel):
    """A deleted account. `late`: its requests have ended; removals before that don't count."""

    account_id: int
    late: bool = False


def start_removal(unit: Unit, account_id: int, *, owner_id: int | None = None, late: bool = False) -> str:
    """Enqueue the job, on behalf of whoever deleted the account; returns its id."""
    payload = AccountToRemove(account_id=account_id, late=late)
    return unit.enqueue(REMOVE_ACCOUNT, payload, owner_id=owner_id, subject=str(account_id))


async def _remove(platform: Platform, payload: AccountToRemove, progress: Progress) -> None:
    implementations = platform.hooks.implementations(hookspecs.on_account_deleted)
    done = await platform.database.read(_done, payload)
    failed: dict[str, BaseException] = {}
    progress.report(
        len(done),
        total=len({implementation.plugin for implementation in implementations} | done),
        unit="plugins",
    )
    for implementation in implementations:
        if implementation.plugin in done:
            continue
        progress.report(message=f"Removing what the plugin '{implementation.plugin}' has stored")
        arguments = {"platform": platform, "account_id": payload.account_id}
        error = await platform.hooks.tell_one(implementation, hookspecs.on_account_deleted, arguments)
        if error is None:
            await platform.database.write(_note, payload.account_id, implementation.plugin)
            progress.advance()
        elif is_machine_fault(error):
            raise error
        else:
            failed[implementation.plugin] = error
    await platform.database.scrub()
    if failed:
        names = ", ".join(f"'{plugin}'" for plugin in failed)
        raise NotRemoved(f"Not removed yet by {names}; retried every night") from next(iter(failed.values()))
    progress.report(message="")


def _done(session: Session, payload: AccountToRemove) -> set[str]:
    """The plugins that need not be asked again."""
    of_account = AccountRemoval.account_id == payload.account_id
    if payload.late:
        deleted_at = session.scalar(select(Account.deleted_at).where(Account.id == payload.account_id))
        if deleted_at is not None:
            of_account &= AccountRemoval.removed_at >= deleted_at + _REQUESTS_END
    return set(session.scalars(select(AccountRemoval.plugin).where(of_account)))


def _note(unit: Unit, account_id: int, plugin: str) -> None:
    unit.session.merge(AccountRemoval(account_id=account_id, plugin=plugin, removed_at=unit.now()))


async def _again(platform: Platform, payload: AccountToRemove) -> None:
    """A deletion can't be undone: a cancelled job starts over."""
    await platform.database.write(lambda unit: start_removal(unit, payload.account_id, late=payload.late))


async def _finish(platform: Platform, _: NoPayload) -> None:
    plugins = {one.plugin for one in platform.hooks.implementations(hookspecs.on_account_deleted)}
    for account_id in await platform.database.read(_unfinished, plugins):
        await platform.database.write(_start_again, account_id)


def _unfinished(session: Session, plugins: Iterable[str]) -> list[int]:
    """The deleted accounts of which a plugin may still store something."""
    query = select(Account.id, Account.deleted_at).where(Account.deleted_at.is_not(None))
    gone: dict[int, datetime] = {
        account_id: deleted_at + _REQUESTS_END
        for account_id, deleted_at in session.execute(query.order_by(Account.id))
        if deleted_at is not None
    }
    removed = select(AccountRemoval.account_id, AccountRemoval.plugin, AccountRemoval.removed_at)
    done = {
        (account, plugin)
        for account, plugin, at in session.execute(removed)
        if account in gone and at >= gone[account]
    }
    return [account for account in gone if any((account, plugin) not in done for plugin in plugins)]


def _start_again(unit: Unit, account_id: int) -> None:
    ours = (JobRecord.name == _NAME) & (JobRecord.subject == str(account_id))
    under_way = select(JobRecord.id).where(ours, JobRecord.status.in_(UNDER_WAY))
    still_early = select(Account.id).where(
        Account.id == account_id, Account.deleted_at > unit.now() - _REQUESTS_END
    )
    if unit.session.scalar(under_way.limit(1)) is None and unit.session.scalar(still_early) is None:
        start_removal(unit, account_id, late=True)


REMOVE_ACCOUNT = LongJob(
    _NAME,
    AccountToRemove,
    _remove,
    title="Remove the data of a deleted account",
    retries=20,
    on_cancel=_again,
)
FINISH_REMOVALS = Job("kernel.finish_removals", NoPayload, _finish, lane="quick", schedule="50 3 * * *")
