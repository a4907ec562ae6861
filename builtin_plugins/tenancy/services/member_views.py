"""Members of an organization as the caller sees them, with hints what it may do to each."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.tenancy.models import Membership
from builtin_plugins.tenancy.schemas_members import MemberOut, MemberQuery
from builtin_plugins.tenancy.services.account_authority import (
    Target,
    read_targets,
    refusal_to_administer,
)
from builtin_plugins.tenancy.services.authority import Caller, remembered_caller
from kernel.sdk import Account, Platform, Principal


async def list_page(
    platform: Platform, principal: Principal, organization_id: int, query: MemberQuery
) -> tuple[list[MemberOut], int]:
    """The members by account id, and how many there are. Raises OrganizationNotFound."""
    caller = await remembered_caller(platform, principal, organization_id)
    wanted, is_account = _wanted(organization_id, query), Account.id == Membership.user_id
    async with platform.database.read() as session:
        counted = select(func.count()).select_from(Membership).join(Account, is_account).where(wanted)
        total = await session.scalar(counted)
        joined = select(Membership, Account).join(Account, is_account).where(wanted)
        ordered = joined.order_by(Membership.user_id).limit(query.limit).offset(query.offset)
        rows = [(row[0], row[1]) for row in await session.execute(ordered)]
        return await render(session, caller, rows), int(total or 0)


def _wanted(organization_id: int, query: MemberQuery) -> ColumnElement[bool]:
    wanted: ColumnElement[bool] = Membership.organization_id == organization_id
    if query.org_role is not None:
        wanted &= Membership.org_role == query.org_role
    if query.suspended is not None:
        active = Membership.suspended_at.is_(None)
        wanted &= ~active if query.suspended else active
    if query.q is not None:
        part = query.q.casefold()
        wanted &= or_(
            Account.username_key.contains(part, autoescape=True),
            Account.email_key.contains(part, autoescape=True),
        )
    return wanted


async def render(
    session: AsyncSession, caller: Caller, rows: Sequence[tuple[Membership, Account]]
) -> list[MemberOut]:
    """The records, with what the caller may do: asked only for those who may do anything at all."""
    if not caller.manages:
        return [_record(row, account, False, False) for row, account in rows]
    targets = await read_targets(session, caller, [account for _, account in rows])
    return [
        _record(
            row,
            account,
            caller.refusal_to_act_on(row.org_role) is None,
            _is_resettable(caller, account, target),
        )
        for (row, account), target in zip(rows, targets, strict=True)
    ]


def _is_resettable(caller: Caller, account: Account, target: Target) -> bool:
    is_local = account.password_hash is not None and account.sso_subject is None
    if not is_local or account.id == caller.id or not caller.administers:
        return False
    return refusal_to_administer(caller, target, reset=True) is None


def _record(row: Membership, account: Account, managed: bool, resettable: bool) -> MemberOut:
    return MemberOut(
        user_id=account.id,
        username=account.username,
        email=account.email,
        org_role=row.org_role,
        suspended=row.suspended_at is not None,
        joined_at=row.joined_at,
        is_active=account.is_active,
        managed_by_caller=managed,
        resettable_by_caller=resettable,
    )
