"""Reading the audit log: who may see which entries, and the query that answers them (spec 2.7)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from sqlalchemy import ColumnElement, bindparam, func, select
from sqlalchemy.orm import Session

from builtin_plugins.accounts import hookspecs
from kernel.sdk import ACCOUNT_STATES, Account, Forbidden, PageQuery, Principal, Scope, scope_of
from kernel.sdk.accounts import AuditEntry
from kernel.sdk.storage import Among, Ids

if TYPE_CHECKING:
    from kernel.sdk import Platform

_LARGEST_ID = 2**31 - 1
_ACCOUNT = "account"


def _in_utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    except OverflowError:
        raise ValueError("is out of range") from None


Moment = Annotated[datetime, AfterValidator(_in_utc)]


class AuditQuery(PageQuery):
    """Which entries to list: those that match every given filter."""

    action: str | None = Field(None, max_length=128, description="Only this action.")
    actor_id: int | None = Field(None, ge=1, le=_LARGEST_ID, description="Only actions by this account.")
    target_type: str | None = Field(None, max_length=64, description="Only actions on targets of this type.")
    target_id: str | None = Field(None, max_length=255, description="Only actions on this target.")
    org_id: int | None = Field(
        None, ge=1, le=_LARGEST_ID, description="Only in this organization and those below it."
    )
    since: Moment | None = Field(None, description="Not before this time; taken as UTC if it has no offset.")
    until: Moment | None = Field(None, description="Not after this time; must not be before `since`.")

    @field_validator("until")
    @classmethod
    def _in_order(cls, value: datetime | None, info: ValidationInfo) -> datetime | None:
        since = info.data.get("since")
        if value is not None and since is not None and value < since:
            raise ValueError("must not be before since")
        return value


class AuditLogEntry(BaseModel):
    """One change. An entry without an actor was made by the operator on the server itself."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    action: str
    target_type: str
    actor_id: int | None = None
    target_id: str | None = None
    before_state: Any | None = None
    after_state: Any | None = None
    created_at: datetime | None = None
    ip_address: str | None = None
    user_agent: str | None = None
    scope_org_id: int | None = None
    scope_type: str = "legacy"
    actor_name: str | None = Field(None, description="The account's name now; null if it is deleted.")
    target_name: str | None = Field(
        None, description="What the target is called now; null if it is gone or the caller does not see it."
    )
    target_within: str | None = Field(None, description="The knowledge base of a document, by its id.")


class AuditLogListResponse(BaseModel):
    """Entries of the audit log, newest first."""

    entries: list[AuditLogEntry]
    total: int
    limit: int
    offset: int


async def list_entries(platform: Platform, principal: Principal, query: AuditQuery) -> AuditLogListResponse:
    """The requested entries that the caller may see. Raises Forbidden for a caller who may see none."""
    where = [*await _visible(platform, principal, query.org_id), *_conditions(query)]
    scope = await scope_of(platform, principal)
    entries, total = await platform.database.snapshot(_page, platform, scope, where, query)
    return AuditLogListResponse(entries=entries, total=total, limit=query.limit, offset=query.offset)


def _page(
    session: Session,
    platform: Platform,
    scope: Scope,
    where: Sequence[ColumnElement[bool]],
    query: AuditQuery,
) -> tuple[list[AuditLogEntry], int]:
    entries = select(AuditEntry).where(*where).order_by(AuditEntry.created_at.desc(), AuditEntry.id.desc())
    rows = session.scalars(entries.limit(query.limit).offset(query.offset))
    total = session.scalar(select(func.count()).select_from(AuditEntry).where(*where))
    records = [AuditLogEntry.model_validate(row) for row in rows]
    _name(session, platform, scope, records)
    return records, total or 0


def _name(session: Session, platform: Platform, scope: Scope, entries: Sequence[AuditLogEntry]) -> None:
    """Enter the present names of who acted, and of what was changed."""
    named = [one.target_id or "" for one in entries if one.target_type == _ACCOUNT]
    ids = {one.actor_id for one in entries} | {int(one) for one in named if _is_id(one)}
    present = select(Account.id, Account.username).where(Account.id.in_(ids), Account.deleted_at.is_(None))
    accounts = {str(row.id): row.username for row in session.execute(present)}
    targets: dict[tuple[str, str], hookspecs.AuditedTarget] = {
        (_ACCOUNT, one): hookspecs.AuditedTarget(name) for one, name in accounts.items()
    }
    for kind in sorted({one.target_type for one in entries} - {_ACCOUNT}):
        target_ids = sorted({one.target_id for one in entries if one.target_type == kind and one.target_id})
        answers = platform.hooks.ask_now(
            hookspecs.name_audited_targets,
            platform=platform,
            session=session,
            scope=scope,
            target_type=kind,
            target_ids=target_ids,
        )
        targets |= {(kind, one): target for answer in answers for one, target in answer.items()}
    for entry in entries:
        entry.actor_name = accounts.get(str(entry.actor_id))
        target = targets.get((entry.target_type, entry.target_id or ""))
        if target is not None:
            entry.target_name, entry.target_within = target.name, target.within


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdecimal() and int(text) <= _LARGEST_ID


async def _visible(platform: Platform, principal: Principal, org_id: int | None) -> list[ColumnElement[bool]]:
    """The conditions for entries that the caller may see; empty for a Platform Admin who asks for all."""
    if not principal.is_user or principal.id is None:
        raise Forbidden("Only Platform Admins and managers of organizations can read the audit log")
    sees_all = await platform.resource(ACCOUNT_STATES).is_platform_admin(principal.id)
    if sees_all and org_id is None:
        return []
    answer = await platform.hooks.ask(
        hookspecs.find_audited_organizations,
        platform=platform,
        principal=principal,
        organization_id=org_id,
    )
    organizations = set(answer or ())
    if sees_all and org_id is not None:
        organizations.add(org_id)  # even a deleted one: its entries stay
    if not organizations:
        raise Forbidden("Only Platform Admins and managers of organizations can read the audit log")
    return [Among(AuditEntry.scope_org_id, bindparam("organizations", sorted(organizations), Ids()))]


def _conditions(query: AuditQuery) -> list[ColumnElement[bool]]:
    conditions = [
        getattr(AuditEntry, name) == value
        for name in ("action", "actor_id", "target_type", "target_id")
        if (value := getattr(query, name)) is not None
    ]
    if query.since is not None:
        conditions.append(AuditEntry.created_at >= query.since)
    if query.until is not None:
        conditions.append(AuditEntry.created_at <= query.until)
    return conditions
