"""Members of an organization as the caller sees them, with hints what it may do to each."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from builtin_plugins.tenancy.models import Membership
from builtin_plugins.tenancy.schemas_members import MemberOut, MemberQuery
from builtin_plugins.tenancy.services.authority import (
    Caller,
    Target,
    read_caller,
    read_targets,
    read_tree,
    refusal_to_administer,
)
from kernel.sdk import Account, Platform, Principal


async def list_page(
    platform: Platform, principal: Principal, organization_id: int, query: MemberQuery
) -> tuple[list[MemberOut], int]:
    """The members by account id, and how many there are. Raises OrganizationNotFound."""
    async with platform.database.read() as session:
        caller = await read_caller(session, principal, organization_id, platform.permissions)
        wanted = _wanted(organization_id, query)
        joined = select(Membership, Account).join(Account, Account.id == Membership.user_id).where(wanted)
        total = await session.scalar(select(func.count()).select_from(joined.subquery()))
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
    tree = await read_tree(session, caller.lineage[0])
    targets = await read_targets(session, [account for _, account in rows], caller.permissions)
    return [
        _record(
            row,
            account,
            caller.refusal_to_act_on(row.org_role) is None,
            _is_resettable(caller, account, target, tree),
        )
        for (row, account), target in zip(rows, targets, strict=True)
    ]


def _is_resettable(caller: Caller, account: Account, target: Target, tree: frozenset[int]) -> bool:
    is_local = account.password_hash is not None and account.sso_subject is None
    if not is_local or account.id == caller.id or not caller.administers:
        return False
    return refusal_to_administer(caller, target, tree, reset=True) is None


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
