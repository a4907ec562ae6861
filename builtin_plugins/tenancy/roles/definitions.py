"""What roles and permission groups share: both are defined in an organization, and contain keys and groups.

They are usable there and in all organizations below, but can only be changed where they are defined, by
somebody who may grant every key that they contain before and after the change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, delete, func, select
from sqlalchemy.orm import Session

from builtin_plugins.tenancy.access.cache import changed_for_all
from builtin_plugins.tenancy.access.changes import Change, change_in
from builtin_plugins.tenancy.access.standing import BUILTIN_ROLES
from builtin_plugins.tenancy.access.tree import require_lineage
from builtin_plugins.tenancy.errors import (
    BuiltinRole,
    DefinedAbove,
    InUse,
    LimitReached,
    NameTaken,
    PermissionGroupNotFound,
)
from builtin_plugins.tenancy.models import PermissionGroup
from builtin_plugins.tenancy.permissions import ROLES_MANAGE
from builtin_plugins.tenancy.roles.nesting import load_groups
from builtin_plugins.tenancy.roles.schemas import (
    GroupCreate,
    GroupOut,
    GroupRef,
    GroupUpdate,
    RoleCreate,
    RoleOut,
    RoleUpdate,
    name_key,
)
from kernel.sdk import Caller, PageQuery, Permission, PlatformError, Unit, Unprocessable

MOST = 500

Out = TypeVar("Out", RoleOut, GroupOut)
Renderer = Callable[[Any, int, Mapping[str, Permission], "RoleContents"], Out]


@dataclass(frozen=True)
class Kind(Generic[Out]):
    """Roles, or permission groups.

    `keys` and `groups` are the tables of their contents, and `keys_of`, `groups_of` and `group_id` the
    columns. `usable` is the condition for those that may be used in a lineage. `uses` returns what uses one
    now, for the audit log and as a sentence (None if nothing does).
    """

    noun: str
    target_type: str
    row: Any
    order: Sequence[Any]
    keys: Any
    keys_of: Any
    groups: Any
    groups_of: Any
    group_id: Any
    not_found: type[PlatformError]
    usable: Callable[[Collection[int]], ColumnElement[bool]]
    show: Renderer[Out]
    uses: Callable[[Session, int], tuple[dict[str, Any], str | None]]
    audited: frozenset[str]


@dataclass(frozen=True)
class Contents:
    """The direct contents of a role or group: permission keys and permission groups."""

    permissions: frozenset[str] = frozenset()
    groups: frozenset[int] = frozenset()

    def replaced(self, body: RoleCreate | RoleUpdate | GroupCreate | GroupUpdate) -> Contents:
        """The contents with the lists from the request in place of these."""
        keys, groups = body.permissions, None
        if isinstance(body, RoleCreate | RoleUpdate):
            groups = body.permission_group_ids
        return Contents(
            self.permissions if keys is None else frozenset(keys),
            self.groups if groups is None else frozenset(groups),
        )


@dataclass(frozen=True)
class RoleContents:
    """The direct contents of several roles or groups, by id, in display order."""

    permissions: Mapping[int, list[str]]
    groups: Mapping[int, list[GroupRef]]

    def of(self, definition_id: int) -> Contents:
        """The contents of one role or group."""
        return Contents(
            frozenset(self.permissions[definition_id]),
            frozenset(ref.id for ref in self.groups[definition_id]),
        )


def change_roles(unit: Unit, caller: Caller, organization_id: int) -> Change:
    """Begin a change by a manager of roles in the organization. Raises OrganizationNotFound, KeyNotHeld."""
    change = change_in(unit, caller, organization_id)
    change.authority.require_to_grant([ROLES_MANAGE.key])
    return change


def list_page(
    session: Session,
    kind: Kind[Out],
    permissions: Mapping[str, Permission],
    organization_id: int,
    query: PageQuery,
) -> tuple[list[Out], int]:
    """The page of those usable here, and how many there are."""
    condition = kind.usable(require_lineage(session, organization_id))
    return page_of(session, kind, permissions, organization_id, query, condition)


def page_of(
    session: Session,
    kind: Kind[Out],
    permissions: Mapping[str, Permission],
    organization_id: int,
    query: PageQuery,
    condition: ColumnElement[bool],
) -> tuple[list[Out], int]:
    """The page of those that match `condition`, as seen from an organization, and how many there are."""
    total = session.scalar(select(func.count()).select_from(kind.row).where(condition))
    ordered = select(kind.row).where(condition).order_by(*kind.order)
    rows = session.scalars(ordered.limit(query.limit).offset(query.offset)).all()
    return _show(session, kind, permissions, organization_id, rows), int(total or 0)


def get(
    session: Session,
    kind: Kind[Out],
    permissions: Mapping[str, Permission],
    organization_id: int,
    definition_id: int,
) -> Out:
    """One that is usable here. Raises the `not_found` of its kind."""
    rows = find_usable(session, kind, require_lineage(session, organization_id), [definition_id])
    return _show(session, kind, permissions, organization_id, rows)[0]


def find_usable(
    session: Session, kind: Kind[Out], lineage: Collection[int], ids: Collection[int]
) -> list[Any]:
    """Those that are usable here. Raises the `not_found` of their kind, naming the first that is not."""
    query = select(kind.row).where(kind.row.id.in_(ids), kind.usable(lineage))
    rows_by_id = {row.id: row for row in session.scalars(query)} if ids else {}
    for definition_id in sorted(ids):
        if definition_id not in rows_by_id:
            raise kind.not_found(
                f"{kind.noun.capitalize()} {definition_id} was not found in this organization"
            )
    return list(rows_by_id.values())


def check_groups(session: Session, lineage: Collection[int], group_ids: Collection[int]) -> None:
    """Raise PermissionGroupNotFound, naming the first of these groups that can't be used here."""
    usable = PermissionGroup.organization_id.in_(lineage)
    query = select(PermissionGroup.id).where(PermissionGroup.id.in_(group_ids), usable)
    usable_ids = set(session.scalars(query)) if group_ids else set()
    for group_id in sorted(set(group_ids) - usable_ids):
        raise PermissionGroupNotFound(f"Permission group {group_id} was not found in this organization")


def create(
    unit: Unit, caller: Caller, kind: Kind[Out], organization_id: int, body: RoleCreate | GroupCreate
) -> Out:
    """Create one. Raises Unprocessable, KeyNotHeld, PermissionGroupNotFound, NameTaken, LimitReached."""
    check_keys(caller.platform.permissions, body.permissions)
    change = change_roles(unit, caller, organization_id)
    contents = Contents().replaced(body)
    change.authority.require_to_grant(keys_within(change, contents))
    _refuse_more(change, kind)
    _refuse_taken(change, kind, body.name)
    row = kind.row(organization_id=organization_id, name=body.name, name_key=name_key(body.name))
    row.description = body.description
    change.session.add(row)
    change.session.flush()
    replace(change, kind, row.id, Contents(), contents)
    new = show_one(change, kind, row)
    change.audit(f"{kind.target_type}.created", kind.target_type, row.id, after=_state(kind, new))
    return new


def update(
    unit: Unit,
    caller: Caller,
    kind: Kind[Out],
    organization_id: int,
    definition_id: int,
    body: RoleUpdate | GroupUpdate,
) -> Out:
    """Change one, with immediate effect wherever it is used. Raises as `create`, and for an inherited one."""
    change = change_roles(unit, caller, organization_id)
    row = find_own(change, kind, definition_id)
    old, before = show_one(change, kind, row), contents_of(change, kind, definition_id)
    after = before.replaced(body)
    check_keys(caller.platform.permissions, body.permissions or (), present=before.permissions)
    change.authority.require_to_grant(keys_within(change, before) | keys_within(change, after))
    if body.name is not None:
        _refuse_taken(change, kind, body.name, but=definition_id)
        row.name, row.name_key = body.name, name_key(body.name)
    if body.description is not None:
        row.description = body.description
    replace(change, kind, definition_id, before, after)
    new = show_one(change, kind, row)
    if new != old:
        record(change, kind, "updated", old, new)
    return new


def remove(
    unit: Unit, caller: Caller, kind: Kind[Out], organization_id: int, definition_id: int, *, force: bool
) -> None:
    """Delete one. Raises InUse while something uses it; with `force`, it is taken from all instead."""
    change = change_roles(unit, caller, organization_id)
    row = find_own(change, kind, definition_id)
    change.authority.require_to_grant(keys_within(change, contents_of(change, kind, definition_id)))
    uses, in_use = kind.uses(change.session, definition_id)
    if in_use is not None and not force:
        raise InUse(in_use)
    before = {**_state(kind, show_one(change, kind, row)), **uses}
    change.session.delete(row)
    change.audit(f"{kind.target_type}.deleted", kind.target_type, definition_id, before=before)
    changed_for_all(change.unit)


def record(change: Change, kind: Kind[Out], what: str, old: Out, new: Out) -> None:
    """Record a change, which affects everybody who has the role or group."""
    action = f"{kind.target_type}.{what}"
    change.audit(action, kind.target_type, new.id, _state(kind, old), _state(kind, new))
    changed_for_all(change.unit)


def find_own(change: Change, kind: Kind[Out], definition_id: int) -> Any:
    """One that is defined in this very organization. Raises its `not_found`, BuiltinRole, DefinedAbove."""
    [row] = find_usable(change.session, kind, change.authority.lineage, [definition_id])
    if row.organization_id is None:
        raise BuiltinRole()
    if row.organization_id != change.organization_id:
        where = f"This {kind.noun} is defined in the organization {row.organization_id} above"
        raise DefinedAbove(f"{where}; change it there")
    return row


def contents_of(change: Change, kind: Kind[Out], definition_id: int) -> Contents:
    """The direct contents of one."""
    return _list(change.session, kind, [definition_id]).of(definition_id)


def keys_within(change: Change, contents: Contents) -> set[str]:
    """All keys of these contents, however nested. Raises PermissionGroupNotFound."""
    check_groups(change.session, change.authority.lineage, contents.groups)
    graph = load_groups(change.session, contents.groups)
    return graph.keys_within(contents.groups) | contents.permissions


def replace(change: Change, kind: Kind[Out], definition_id: int, before: Contents, after: Contents) -> None:
    """Replace the existing contents."""
    session = change.session
    gone = kind.keys.permission_key.in_(before.permissions - after.permissions)
    session.execute(delete(kind.keys).where(kind.keys_of == definition_id, gone))
    out = kind.group_id.in_(before.groups - after.groups)
    session.execute(delete(kind.groups).where(kind.groups_of == definition_id, out))
    own, nested, group_id = kind.keys_of.key, kind.groups_of.key, kind.group_id.key
    session.add_all(
        kind.keys(**{own: definition_id, "permission_key": key})
        for key in after.permissions - before.permissions
    )
    session.add_all(
        kind.groups(**{nested: definition_id, group_id: group}) for group in after.groups - before.groups
    )
    session.flush()


def show_one(change: Change, kind: Kind[Out], row: Any) -> Out:
    """One as clients see it."""
    organization_id = change.organization_id or 0
    return _show(change.session, kind, change.authority.permissions, organization_id, [row])[0]


def fields_of(row: Any, organization_id: int, permissions: list[str]) -> dict[str, Any]:
    """The fields that roles and groups have in common, as seen from an organization."""
    return {
        "id": row.id,
        "organization_id": row.organization_id,
        "name": row.name,
        "description": row.description,
        "permissions": permissions,
        "inherited_from": row.organization_id if row.organization_id != organization_id else None,
        "created_at": row.created_at,
    }


def check_keys(
    permissions: Mapping[str, Permission], keys: Sequence[str], present: Collection[str] = ()
) -> None:
    """Raise Unprocessable for each key that a role can't contain; `present` are those it already contains."""
    problems = []
    for place, key in enumerate(keys):
        why = None if key in present else _problem(permissions.get(key))
        if why is not None:
            loc = ["body", "permissions", place]
            problems.append({"type": "value_error", "loc": loc, "msg": f"'{key}' {why}", "input": key})
    if problems:
        raise Unprocessable(problems)


def _problem(permission: Permission | None) -> str | None:
    if permission is None:
        return "is not a permission key; GET /v1/permissions lists all"
    if permission.scope != "organization":
        return (
            f"has the scope '{permission.scope}', and a role holds keys of the scope 'organization'; "
            "GET /v1/permissions lists all with their scopes"
        )
    return None


def _list(session: Session, kind: Kind[Out], ids: Sequence[int]) -> RoleContents:
    keys: dict[int, list[str]] = defaultdict(list)
    query = select(kind.keys_of, kind.keys.permission_key).where(kind.keys_of.in_(ids))
    for definition_id, key in session.execute(query.order_by(kind.keys.permission_key)):
        keys[definition_id].append(key)
    groups: dict[int, list[GroupRef]] = defaultdict(list)
    nested = (
        select(kind.groups_of, PermissionGroup.id, PermissionGroup.name)
        .join(PermissionGroup, PermissionGroup.id == kind.group_id)
        .where(kind.groups_of.in_(ids))
        .order_by(PermissionGroup.id)
    )
    for definition_id, group_id, name in session.execute(nested):
        groups[definition_id].append(GroupRef(id=group_id, name=name))
    return RoleContents(keys, groups)


def _show(
    session: Session,
    kind: Kind[Out],
    permissions: Mapping[str, Permission],
    organization_id: int,
    rows: Sequence[Any],
) -> list[Out]:
    listed = _list(session, kind, [row.id for row in rows])
    return [kind.show(row, organization_id, permissions, listed) for row in rows]


def _state(kind: Kind[Out], record: Out) -> dict[str, Any]:
    """What the audit log records."""
    return record.model_dump(include=set(kind.audited))


def _refuse_taken(change: Change, kind: Kind[Out], name: str, but: int | None = None) -> None:
    key = name_key(name)
    if kind.noun == "role" and key in BUILTIN_ROLES:
        raise NameTaken(f"'{name}' is the name of a built-in role; choose another")
    mine = kind.row.organization_id == change.organization_id
    existing_id = change.session.scalar(select(kind.row.id).where(mine, kind.row.name_key == key))
    if existing_id is not None and existing_id != but:
        raise NameTaken(f"A {kind.noun} with this name already exists in this organization; choose another")


def _refuse_more(change: Change, kind: Kind[Out]) -> None:
    mine = kind.row.organization_id == change.organization_id
    count = change.session.scalar(select(func.count()).select_from(kind.row).where(mine))
    if int(count or 0) >= MOST:
        raise LimitReached(f"An organization has at most {MOST} {kind.noun}s; delete one first")
