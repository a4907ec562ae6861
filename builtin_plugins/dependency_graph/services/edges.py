"""Edges as rows: written without cycles, also queried inside units of other plugins."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.plugin_registry import api as plugin_registry
from kernel.sdk import BadRequest, Caller, NotFound, Platform, Unit, audit, utc_now

from ..index import DEEPEST
from ..live import EDGES_CHANGED
from ..models import Edge
from ..schemas import AddDependency, DependencyAdded, RemoveDependency

LOCK = "dependency_graph"
_MOST_AT_ONCE = 10_000


class CycleRefused(BadRequest):
    code = "dependency_cycle"


def add(unit: Unit, caller: Caller, body: AddDependency) -> DependencyAdded:
    """Write an edge, or change the existing one. Raises CycleRefused."""
    unit.lock(LOCK)
    of_plugins = body.depends_on_type == "plugin"
    if of_plugins and body.plugin_id == body.depends_on:
        raise CycleRefused("A plugin can't depend on itself")
    if of_plugins and body.dependency_type == "requires":
        _check_cycle(unit.session, body)
    row = _find(unit.session, body.plugin_id, body.depends_on_type, body.depends_on)
    if row is None:
        row = Edge(plugin_id=body.plugin_id, depends_on=body.depends_on, depends_on_type=body.depends_on_type)
        unit.session.add(row)
    row.dependency_type, row.version_constraint = body.dependency_type, body.version_constraint
    row.plugin_name = body.plugin_name or row.plugin_name
    row.depends_on_name = body.depends_on_name or row.depends_on_name
    row.changed_at = utc_now()
    _changed(unit, body.plugin_id)
    after = {"depends_on": row.depends_on, "type": row.dependency_type, "versions": row.version_constraint}
    audit(unit, "dependency.written", "listing", row.plugin_id, after=after, origin=caller.origin)
    return DependencyAdded(
        plugin_id=row.plugin_id,
        depends_on=row.depends_on,
        type=body.dependency_type,
        depends_on_type=body.depends_on_type,
        version_constraint=row.version_constraint,
    )


def remove(unit: Unit, caller: Caller, body: RemoveDependency) -> None:
    """Remove an edge. Raises NotFound."""
    unit.lock(LOCK)
    row = _find(unit.session, body.plugin_id, body.depends_on_type, body.depends_on)
    if row is None:
        raise NotFound("There is no such dependency")
    unit.session.delete(row)
    _changed(unit, body.plugin_id)
    before = {"depends_on": row.depends_on, "type": row.dependency_type}
    audit(unit, "dependency.removed", "listing", row.plugin_id, before=before, origin=caller.origin)


def _find(session: Session, plugin_id: str, kind: str, depends_on: str) -> Edge | None:
    query = select(Edge).where(
        Edge.plugin_id == plugin_id, Edge.depends_on_type == kind, Edge.depends_on == depends_on
    )
    edge: Edge | None = session.scalar(query)
    return edge


def _changed(unit: Unit, plugin_id: str) -> None:
    unit.session.flush()
    unit.notify(EDGES_CHANGED, plugin_id)


def _check_cycle(session: Session, body: AddDependency) -> None:
    """Raise CycleRefused, naming the cycle, if the target requires the plugin already."""
    before: dict[str, str] = {}
    level = [body.depends_on]
    visited = {body.depends_on}
    while level:
        next_level = []
        for source, target in _required_by_all(session, level):
            if target in visited:
                continue
            visited.add(target)
            before[target] = source
            next_level.append(target)
            if target == body.plugin_id:
                raise CycleRefused(f"This would create a cycle: {_cycle(session, body, before)}")
        level = next_level


def _cycle(session: Session, body: AddDependency, before: dict[str, str]) -> str:
    way = [body.plugin_id]
    while way[-1] != body.depends_on:
        way.append(before[way[-1]])
    ids = [body.plugin_id, *reversed(way)]
    names = _names(session, ids)
    if body.plugin_name:
        names[body.plugin_id] = body.plugin_name
    if body.depends_on_name:
        names[body.depends_on] = body.depends_on_name
    return " → ".join(names.get(one, one) for one in ids)


def _names(session: Session, ids: Sequence[str]) -> dict[str, str]:
    """Names stored with edges."""
    names: dict[str, str] = {}
    query = select(Edge).where(Edge.plugin_id.in_(ids) | Edge.depends_on.in_(ids))
    for row in session.scalars(query):
        if row.plugin_name:
            names[row.plugin_id] = row.plugin_name
        if row.depends_on_name:
            names[row.depends_on] = row.depends_on_name
    return names


def _required_by_all(session: Session, plugins: Sequence[str]) -> list[tuple[str, str]]:
    """(plugin, what it requires) of some plugins, directly."""
    pairs: list[tuple[str, str]] = []
    for at in range(0, len(plugins), _MOST_AT_ONCE):
        query = select(Edge.plugin_id, Edge.depends_on).where(
            Edge.plugin_id.in_(plugins[at : at + _MOST_AT_ONCE]),
            Edge.dependency_type == "requires",
            Edge.depends_on_type == "plugin",
        )
        pairs += [(source, target) for source, target in session.execute(query.order_by(Edge.depends_on))]
    return pairs


def _requiring(session: Session, plugins: Sequence[str]) -> list[tuple[str, str]]:
    """(plugin, what requires it) of some plugins, directly."""
    query = select(Edge.depends_on, Edge.plugin_id).where(
        Edge.depends_on.in_(plugins), Edge.dependency_type == "requires", Edge.depends_on_type == "plugin"
    )
    return [(target, source) for target, source in session.execute(query.order_by(Edge.plugin_id))]


def closure(
    platform: Platform, session: Session, plugin_id: str, *, backwards: bool
) -> list[plugin_registry.RequiredPlugin]:
    """All that a plugin requires, or that requires it, nearest first."""
    step = _requiring if backwards else _required_by_all
    depths = {plugin_id: 0}
    level = [plugin_id]
    for depth in range(1, DEEPEST + 1):
        level = list(dict.fromkeys(end for _, end in step(session, level) if end not in depths))
        depths.update(dict.fromkeys(level, depth))
        if not level:
            break
    del depths[plugin_id]
    names = _names(session, list(depths)) if depths else {}
    spec, plugin_ids = plugin_registry.find_listings, list(depths)
    answers = platform.hooks.ask_now(spec, platform=platform, session=session, plugins=plugin_ids)
    names.update({ref.id: ref.name for answer in answers for ref in answer})
    return [plugin_registry.RequiredPlugin(one, names.get(one, one), depth) for one, depth in depths.items()]
