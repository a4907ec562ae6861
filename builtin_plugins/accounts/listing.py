"""The list of accounts that administrators search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, false, func, not_, select
from sqlalchemy.orm import Session

from builtin_plugins.accounts import hookspecs
from builtin_plugins.accounts.guards import where_sso
from builtin_plugins.accounts.schemas import UsersQuery
from kernel.sdk import Account

if TYPE_CHECKING:
    from kernel.sdk import Platform


async def find_accounts(platform: Platform, query: UsersQuery) -> tuple[list[Account], int]:
    """The matching accounts, oldest first, and their total number. None for an unknown organization."""
    return await platform.database.snapshot(_page, _conditions(platform, query), query)


def _page(
    session: Session, conditions: Sequence[ColumnElement[bool]], filters: UsersQuery
) -> tuple[list[Account], int]:
    query = select(Account).where(*conditions).order_by(Account.id)
    rows = session.scalars(query.limit(filters.limit).offset(filters.offset)).all()
    total = session.scalar(select(func.count()).select_from(Account).where(*conditions))
    return list(rows), int(total or 0)


def _conditions(platform: Platform, query: UsersQuery) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [Account.deleted_at.is_(None)]
    if query.org_id is not None:
        spec = hookspecs.select_members
        members = platform.hooks.ask_now(spec, platform=platform, organization_id=query.org_id)
        conditions.append(false() if members is None else Account.id.in_(members))
    if query.q is not None:
        part = query.q.casefold()
        in_name = Account.username_key.contains(part, autoescape=True)
        conditions.append(in_name | Account.email_key.contains(part, autoescape=True))
    for name in ("role", "is_active", "platform_admin"):
        value = getattr(query, name)
        if value is not None:
            conditions.append(getattr(Account, name) == value)
    if query.sso is not None:
        conditions.append(where_sso() if query.sso else not_(where_sso()))
    return conditions
