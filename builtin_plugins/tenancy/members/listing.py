"""Members of an organization as the caller sees them, with hints about what the caller may do to each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from builtin_plugins.tenancy.access.authority import Authority, remembered_authority
from builtin_plugins.tenancy.errors import OrganizationNotFound
from builtin_plugins.tenancy.members.account_rules import TargetAccount, read_targets, refusal_to_administer
from builtin_plugins.tenancy.members.rules import refusal_to_act_on
from builtin_plugins.tenancy.members.schemas import MemberOut, MemberQuery
from builtin_plugins.tenancy.models import Membership
from builtin_plugins.tenancy.permissions import MEMBERS_MANAGE
from kernel.sdk import Account, Caller

_IS_ACCOUNT = Account.id == Membership.user_id
_IS_LOCAL = Account.password_hash.is_not(None) & Account.sso_subject.is_(None)
_MEMBERS = select(
    Membership.user_id,
    Account.username,
    Account.email,
    Membership.org_role,
    Membership.suspended_at,
    Membership.joined_at,
    Membership.managed_since,
    Account.is_active,
    ((Account.role == "admin") | Account.platform_admin).label("is_administrator"),
    _IS_LOCAL.label("is_local"),
).join(Account, _IS_ACCOUNT)


async def list_page(caller: Caller, organization_id: int, query: MemberQuery) -> tuple[list[MemberOut], int]:
    """The members by account id, and how many there are. Raises OrganizationNotFound."""
    authority = await remembered_authority(caller, organization_id=organization_id)
    if not authority.lineage:
        raise OrganizationNotFound()
    return await caller.platform.database.read(_page, authority, organization_id, query)


def _page(
    session: Session, authority: Authority, organization_id: int, query: MemberQuery
) -> tuple[list[MemberOut], int]:
    condition = _condition(organization_id, query)
    counted = select(func.count()).select_from(Membership).join(Account, _IS_ACCOUNT).where(condition)
    total = session.scalar(counted)
    ordered = _MEMBERS.where(condition).order_by(Membership.user_id).limit(query.limit).offset(query.offset)
    rows = session.execute(ordered).all()
    return _render(session, authority, organization_id, rows), int(total or 0)


def _condition(organization_id: int, query: MemberQuery) -> ColumnElement[bool]:
    condition: ColumnElement[bool] = Membership.organization_id == organization_id
    if query.org_role is not None:
        condition &= Membership.org_role == query.org_role
    if query.suspended is not None:
        active = Membership.suspended_at.is_(None)
        condition &= ~active if query.suspended else active
    if query.q is not None:
        part = query.q.casefold()
        condition &= or_(
            Account.username_key.contains(part, autoescape=True),
            Account.email_key.contains(part, autoescape=True),
        )
    return condition


def render_one(session: Session, authority: Authority, organization_id: int, user_id: int) -> MemberOut:
    """The record of one member."""
    query = _MEMBERS.where(Membership.organization_id == organization_id, Membership.user_id == user_id)
    return _render(session, authority, organization_id, session.execute(query).all())[0]


def _render(
    session: Session, authority: Authority, organization_id: int, rows: Sequence[Any]
) -> list[MemberOut]:
    """The records, with what the caller may do; this is only computed for callers who may do anything."""
    if not authority.manages_members:
        return [_record(row, False, False) for row in rows]
    accounts = {row.user_id: bool(row.is_administrator) for row in rows}
    targets = read_targets(session, authority, organization_id, accounts)
    return [
        _record(
            row,
            refusal_to_act_on(authority, row.org_role) is None,
            _is_resettable(authority, row, targets[row.user_id]),
        )
        for row in rows
    ]


def _is_resettable(authority: Authority, row: Any, target: TargetAccount) -> bool:
    if not row.is_local or row.user_id == authority.account_id or not authority.holds(MEMBERS_MANAGE.key):
        return False
    return refusal_to_administer(authority, target, reset=True) is None


def _record(row: Any, managed: bool, resettable: bool) -> MemberOut:
    return MemberOut(
        user_id=row.user_id,
        username=row.username,
        email=row.email,
        org_role=row.org_role,
        suspended=row.suspended_at is not None,
        joined_at=row.joined_at,
        is_active=row.is_active,
        managed=row.managed_since is not None,
        managed_by_caller=managed,
        resettable_by_caller=resettable,
    )
