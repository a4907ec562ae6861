"""The catalog's tools: listed with their plugins, imported from manifests and installed plugins."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, ValidationError
from sqlalchemy import ColumnElement, Select, func, select, update
from sqlalchemy.orm import Session

from kernel.sdk import Caller, PlatformError, Principal, Unit, audit

from ..errors import ListingNotFound
from ..models import ListedTool, Listing
from ..tool_schemas import (
    Deactivated,
    NothingToSync,
    PluginTools,
    Synced,
    SyncRequest,
    ToolDetail,
    ToolItem,
    ToolList,
    ToolsQuery,
)
from .listings import check_unreviewed, find_writable
from .records import find, seen_by
from .search import index

_TIERS = ("free", "community", "pro", "enterprise")
_TYPES = ("analysis", "data", "action", "query")
_MOST_TOOLS = 500
_ORDER = (Listing.name_key, ListedTool.tool_name)
_FIELDS = (
    "type",
    "description",
    "endpoint",
    "method",
    "parameters",
    "response_format",
    "required_tier",
    "active",
)


class SyncFailed(PlatformError):
    """Some tools are invalid; the others are in the catalog."""

    status = 500
    code = "sync_failed"


def _from_text(value: Any) -> Any:
    """JSON that arrives as text (wire-facts 10.5)."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise ValueError("is not JSON") from None


def _tier(value: Any) -> Any:
    return value if value in _TIERS else "pro" if value == "professional" else "community"


class DeclaredTool(BaseModel):
    """A tool as a manifest declares it (wire-facts 6.6)."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    description: Annotated[str, Field(max_length=20_000)] | None = None
    parameters: Annotated[dict[str, Any], BeforeValidator(_from_text)] = Field(default_factory=dict)
    response_format: Annotated[Any, BeforeValidator(_from_text)] = None
    action: Annotated[str, Field(max_length=200)] | None = None
    endpoint: Annotated[str, Field(max_length=500)] | None = None
    required_tier: Annotated[str, BeforeValidator(_tier)] = "community"
    type: Literal["analysis", "data", "action", "query"] | None = None
    method: Literal["GET", "POST"] = "POST"

    def columns(self) -> dict[str, Any]:
        """The values of its row."""
        by_action = f"/actions/{self.action}" if self.action else f"/{self.name}"
        return {
            "type": self.type or ("action" if self.action else "analysis"),
            "description": self.description,
            "endpoint": self.endpoint or by_action,
            "method": self.method,
            "parameters": flattened(self.parameters),
            "response_format": self.response_format,
            "required_tier": self.required_tier,
            "active": True,
        }


def flattened(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A nested schema as one object for each parameter; a flat one stays the same."""
    if not isinstance(schema.get("properties"), Mapping):
        return {} if schema.get("type") == "object" else dict(schema)
    required = schema.get("required") or ()
    parameters = {}
    for name, field in schema["properties"].items():
        field = field if isinstance(field, Mapping) else {}
        parameters[name] = {
            "type": field.get("type", "string"),
            "description": field.get("description", ""),
            **{key: field[key] for key in ("enum", "default") if key in field},
            **({"required": True} if name in required else {}),
        }
    return parameters


def _rows() -> Select[Any]:
    """The fields of tools, with those of their plugins."""
    plugins = (Listing.name.label("plugin_name"), Listing.display_name.label("plugin_display_name"))
    tools = (getattr(ListedTool, name) for name in ("id", "tool_name", "plugin_id", *_FIELDS))
    return select(*tools, *plugins).join(Listing, Listing.id == ListedTool.plugin_id)


def list_page(session: Session, principal: Principal, query: ToolsQuery) -> ToolList:
    """A page of tools, by plugin and name. They are found by an index; only the page's rows are read."""
    conditions = _conditions(principal, query)
    keys = (
        select(ListedTool.plugin_id, ListedTool.tool_name)
        .join(Listing, Listing.id == ListedTool.plugin_id)
        .where(*conditions)
    )
    total = session.scalar(keys.with_only_columns(func.count(), maintain_column_froms=True)) or 0
    page = keys.order_by(*_ORDER).limit(query.limit).offset(query.offset).subquery()
    on_page = (ListedTool.plugin_id == page.c.plugin_id) & (ListedTool.tool_name == page.c.tool_name)
    items = _items(session, _rows().join(page, on_page))
    return ToolList(tools=items, count=len(items), total=total, limit=query.limit, offset=query.offset)


def _conditions(principal: Principal, query: ToolsQuery) -> list[ColumnElement[bool]]:
    conditions = [seen_by(principal)]
    if query.active_only:
        conditions.append(ListedTool.active.is_(True))
    if query.tier is not None:
        conditions.append(ListedTool.required_tier == query.tier)
    if query.tool_name is not None:
        conditions.append(ListedTool.tool_name == query.tool_name)
    return conditions


def show(session: Session, principal: Principal, name: str) -> ToolDetail:
    """An active tool; if several plugins have it, the first plugin's by name. Raises ListingNotFound."""
    query = _rows().add_columns(Listing.description.label("plugin_description"))
    mine = query.where(seen_by(principal), ListedTool.tool_name == name, ListedTool.active.is_(True))
    row = session.execute(mine.order_by(*_ORDER).limit(1)).mappings().first()
    if row is None:
        raise ListingNotFound(f"There is no tool '{name[:80]}'")
    return ToolDetail(**row)


def of_plugin(session: Session, principal: Principal, plugin_id: str) -> PluginTools:
    """The active tools of a plugin. Raises ListingNotFound."""
    listing = find(session, principal, plugin_id)
    items = _items(session, _rows().where(ListedTool.plugin_id == plugin_id, ListedTool.active.is_(True)))
    return PluginTools(plugin_id=plugin_id, plugin_name=listing.name, tools=items, count=len(items))


def _items(session: Session, query: Select[Any]) -> list[ToolItem]:
    return [ToolItem(**row) for row in session.execute(query.order_by(*_ORDER)).mappings()]


def sync(unit: Unit, caller: Caller, body: SyncRequest) -> NothingToSync | Synced:
    """Import the tools of a manifest into the catalog. Raises ListingNotFound, NotEditable.

    Tools that are no longer in it are deactivated, unless any tool is invalid.
    """
    listing = find_writable(unit.session, caller.principal, body.plugin_id)
    check_unreviewed(caller.principal, listing)
    section = body.manifest.get("ai_tools")
    entries = section.get("tools") if isinstance(section, Mapping) else section
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        return NothingToSync(success=True, tools_imported=0, message="The manifest has no ai_tools section")
    good, errors = _read(entries)
    _, gone = put(unit, listing, {one.name: one.columns() for one in good}, keep_others=bool(errors))
    index(unit, listing)
    after = {"imported": len(good), "deactivated": gone, "failed": len(errors)}
    audit(unit, "listing.tools_synced", "listing", listing.id, after=after, origin=caller.origin)
    message = f"{len(good)} tools imported" if not errors else f"{len(errors)} tools failed"
    return Synced(
        success=not errors,
        tools_imported=len(good),
        message=message,
        tools_deactivated=gone,
        errors=errors,
    )


def _read(entries: Sequence[Any]) -> tuple[list[DeclaredTool], list[str]]:
    good: dict[str, DeclaredTool] = {}
    errors = []
    for entry in entries[:_MOST_TOOLS]:
        if not isinstance(entry, Mapping) or not entry.get("name"):
            continue  # wire-facts 6.6: entries without a name are dropped
        try:
            tool = DeclaredTool.model_validate(dict(entry))
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            errors.append(f"{str(entry['name'])[:80]}: {place}: {first['msg']}")
        else:
            good[tool.name] = tool
    if len(entries) > _MOST_TOOLS:
        errors.append(f"There are more than {_MOST_TOOLS} tools")
    return list(good.values()), errors


def put(
    unit: Unit, listing: Listing, tools: Mapping[str, Mapping[str, Any]], *, keep_others: bool = False
) -> tuple[bool, int]:
    """Give a listing exactly these tools; returns whether anything changed, and how many were deactivated."""
    rows = unit.session.scalars(select(ListedTool).where(ListedTool.plugin_id == listing.id))
    rows_by_name = {row.tool_name: row for row in rows}
    changed, gone = False, 0
    for name, columns in tools.items():
        row = rows_by_name.get(name)
        if row is None:
            row = ListedTool(id=str(uuid.uuid4()), plugin_id=listing.id, tool_name=name)
            unit.session.add(row)
        for column, value in columns.items():
            if getattr(row, column) != value:
                setattr(row, column, value)
                changed = True
    for name, row in rows_by_name.items():
        if name not in tools and row.active and not keep_others:
            row.active = False
            gone += 1
    unit.session.flush()
    return changed or gone > 0, gone


def deactivate(unit: Unit, caller: Caller, plugin_id: str) -> Deactivated:
    """Deactivate all tools of a plugin. Raises ListingNotFound."""
    listing = find_writable(unit.session, caller.principal, plugin_id)
    mine = (
        update(ListedTool)
        .where(ListedTool.plugin_id == listing.id, ListedTool.active.is_(True))
        .values(active=False)
    )
    number = len(unit.session.scalars(mine.returning(ListedTool.id)).all())
    index(unit, listing)
    after = {"deactivated": number}
    audit(unit, "listing.tools_deactivated", "listing", listing.id, after=after, origin=caller.origin)
    return Deactivated(success=True, tools_deactivated=number)
