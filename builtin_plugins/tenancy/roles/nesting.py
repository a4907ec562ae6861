"""Nested permission groups: their total keys, and which may be nested."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Select, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from builtin_plugins.tenancy.errors import GroupCycle, GroupsTooDeep
from builtin_plugins.tenancy.models import GroupChild, GroupPermission, PermissionGroup

MAX_DEPTH = 8
MAX_CHILDREN = 50


@dataclass(frozen=True)
class GroupGraph:
    """Groups with all that are nested in them: names, own keys, and direct children."""

    names: Mapping[int, str]
    keys: Mapping[int, Sequence[str]]
    children: Mapping[int, Sequence[int]]

    def keys_within(self, group_ids: Iterable[int]) -> set[str]:
        """The keys of these groups, including nested ones."""
        return {key for group_id in self._ways(group_ids) for key in self.keys.get(group_id, ())}

    def way_to(self, key: str, group_ids: Iterable[int]) -> tuple[int, ...] | None:
        """The shortest path from one of these groups to one that directly contains the key."""
        ways = self._ways(group_ids)
        return next((way for group_id, way in ways.items() if key in self.keys.get(group_id, ())), None)

    def _ways(self, group_ids: Iterable[int]) -> dict[int, tuple[int, ...]]:
        """Every reachable group with the shortest path to it, the nearest first."""
        ways: dict[int, tuple[int, ...]] = {group_id: (group_id,) for group_id in group_ids}
        waiting = deque(ways)
        while waiting:
            group_id = waiting.popleft()
            for child in self.children.get(group_id, ()):
                if child not in ways:
                    ways[child] = (*ways[group_id], child)
                    waiting.append(child)
        return ways


def load_groups(session: Session, group_ids: Iterable[int]) -> GroupGraph:
    """These groups and all groups nested in them."""
    within = reach(group_ids, down=True)
    names = session.execute(
        select(PermissionGroup.id, PermissionGroup.name).where(PermissionGroup.id.in_(within))
    )
    keys: dict[int, list[str]] = defaultdict(list)
    query = select(GroupPermission.group_id, GroupPermission.permission_key).where(
        GroupPermission.group_id.in_(within)
    )
    for group_id, key in session.execute(query.order_by(GroupPermission.permission_key)):
        keys[group_id].append(key)
    return GroupGraph(dict(names.all()), keys, _edges(session, group_ids, down=True))


def check_nesting(session: Session, parent_id: int, child_id: int) -> None:
    """Check that one group may be nested in the other. Raises GroupCycle, GroupsTooDeep.

    Only valid under the lock `tenancy`, as two simultaneous nestings could create a cycle.
    """
    below = _edges(session, [child_id], down=True)
    if parent_id == child_id or parent_id in below or any(parent_id in groups for groups in below.values()):
        raise GroupCycle()
    above = _edges(session, [parent_id], down=False)
    if _depth(above, parent_id) + _depth(below, child_id) > MAX_DEPTH:
        raise GroupsTooDeep(f"Permission groups may be nested at most {MAX_DEPTH} levels deep")


def _depth(edges: Mapping[int, Sequence[int]], start: int) -> int:
    """The number of groups on the longest path from `start`."""
    depths: dict[int, int] = {}

    def of(group_id: int) -> int:
        if group_id not in depths:
            depths[group_id] = 1 + max(map(of, edges.get(group_id, ())), default=0)
        return depths[group_id]

    return of(start)


def reach(group_ids: Iterable[int] | Select[int], *, down: bool) -> Select[int]:
    """The ids of these groups and of all nested in them or, without `down`, of all that contain them."""
    start_ids = group_ids if isinstance(group_ids, Select) else list(group_ids)
    start = select(PermissionGroup.id.label("id")).where(PermissionGroup.id.in_(start_ids))
    reached = start.cte("reach", recursive=True)
    near, far = _ends(down)
    # "union", not "union all": each group is followed once, however many paths lead to it.
    reached = reached.union(select(far).join(reached, near == reached.c.id))
    return select(reached.c.id)


def _edges(session: Session, group_ids: Iterable[int], *, down: bool) -> dict[int, list[int]]:
    near, far = _ends(down)
    edges: dict[int, list[int]] = defaultdict(list)
    query = select(near, far).where(near.in_(reach(group_ids, down=down))).order_by(near, far)
    for source, target in session.execute(query):
        edges[source].append(target)
    return dict(edges)


def _ends(down: bool) -> tuple[InstrumentedAttribute[int], InstrumentedAttribute[int]]:
    if down:
        return GroupChild.group_id, GroupChild.child_group_id
    return GroupChild.child_group_id, GroupChild.group_id
