"""Which points are in which group, in memory: a filter names thousands of groups, a search needs labels."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import String, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.functions import FunctionElement

from builtin_plugins.vectors.fusion import Labels, as_labels

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from builtin_plugins.vectors.protocol import GroupQuery

_FEWEST_DEAD = 1000


class GroupIndex:
    """The labels of each group of one collection. All methods may be called from any thread.

    A label is stored once, and its group never changes: adding it again changes nothing.
    """

    def __init__(self) -> None:
        import numpy as np

        self.folder: Path | None = None
        self.deleted = 0
        self.stale = 0.0
        self._guard = threading.Lock()
        self._slots: dict[str, int] = {}
        self._labels: Labels = np.empty(0, np.int64)
        self._owners: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._added: list[tuple[Labels, npt.NDArray[np.int64]]] = []

    @property
    def count(self) -> int:
        with self._guard:
            self._settle()
            return len(self._labels)

    def begin_loading(self) -> None:
        """Added labels are settled when they are first needed, anyway."""

    def end_loading(self) -> None:
        """See `begin_loading`."""

    def add(self, labels: npt.ArrayLike, groups: Sequence[str]) -> None:
        """Store the labels [n] with their groups [n]."""
        import numpy as np

        with self._guard:
            owners = [self._slots.setdefault(group, len(self._slots)) for group in groups]
            self._added.append((as_labels(labels), np.array(owners, np.int64)))

    def remove(self, labels: npt.ArrayLike) -> None:
        """Forget `labels`; unknown ones are ignored."""
        import numpy as np

        with self._guard:
            self._settle()
            remaining = ~np.isin(self._labels, as_labels(labels))
            self._labels, self._owners = self._labels[remaining], self._owners[remaining]
            alive = np.unique(self._owners)
            if len(self._slots) > 2 * len(alive) + _FEWEST_DEAD:
                names = list(self._slots)
                self._slots = {names[slot]: at for at, slot in enumerate(alive.tolist())}
                self._owners = np.searchsorted(alive, self._owners)

    def content(self) -> tuple[Labels, list[str]]:
        """The labels [n], sorted, and their groups [n]."""
        with self._guard:
            self._settle()
            names = list(self._slots)
            return self._labels, [names[owner] for owner in self._owners.tolist()]

    def labels_of(self, groups: Collection[str]) -> Labels:
        """The labels of these groups; unknown ones have none."""
        import numpy as np

        with self._guard:
            self._settle()
            among = np.zeros(len(self._slots), np.bool_)
            slots = [slot for slot in map(self._slots.get, groups) if slot is not None]
            among[slots] = True
            return self._labels[among[self._owners]]

    def _settle(self) -> None:
        """Join what was added to the sorted labels."""
        import numpy as np

        if self._added:
            every = [(self._labels, self._owners), *self._added]
            self._labels, first = np.unique(np.concatenate([one for one, _ in every]), return_index=True)
            self._owners = np.concatenate([one for _, one in every])[first]
            self._added = []


class _Collected(FunctionElement[str]):
    """All values of a column as one: a row for each would take longer than to find them."""

    type = String()
    inherit_cache = True


@compiles(_Collected)
def _as_array(element: _Collected, compiler: Any, **options: Any) -> str:
    return f"CAST(json_agg({compiler.process(element.clauses, **options)}) AS text)"


@compiles(_Collected, "sqlite")
def _as_json(element: _Collected, compiler: Any, **options: Any) -> str:
    return f"json_group_array({compiler.process(element.clauses, **options)})"


def group_names(session: Session, query: GroupQuery) -> list[str]:
    """The names of the groups that a query finds."""
    (column,) = query.names.subquery("groups").c
    names_json = session.scalar(select(_Collected(column)))
    names: list[str] = json.loads(names_json or "[]")
    return names
