"""Which points are in which group, in files that all processes of the machine map; changes are in memory.

```
FOLDER/labels.npy  int64 [n]: the labels, sorted
      /owners.npy  int32 [n]: for each, the place of its group's name
      /names.npy   bytes [m]: the names of the groups in UTF-8, sorted
```

The files are never changed. What was removed since is only marked, until the index is built again from the
rows; what was added is in memory until the index is saved.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builtin_plugins.vectors.dense_segments import new_file
from builtin_plugins.vectors.fusion import Labels, as_labels
from builtin_plugins.vectors.groups import GroupIndex

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_FORMAT = 1
_LABELS, _OWNERS, _NAMES = "labels.npy", "owners.npy", "names.npy"


class FiledGroupIndex:
    """An index in files, with the methods of `GroupIndex`. All may be called from any thread."""

    def __init__(self, folder: Path, parameters: Mapping[str, str] | None = None) -> None:
        """In `folder`: empty, or with the files of an index that had these `parameters`.

        Raises OSError or ValueError if the folder can't be read.
        """
        self.folder: Path | None = folder
        self.deleted = int((parameters or {}).get("deleted", 0))
        self._folder = folder
        self._guard = threading.RLock()
        self._recent = GroupIndex()
        self._map()

    @property
    def count(self) -> int:
        with self._guard:
            return self._recent.count + self._count

    @property
    def stale(self) -> float:
        """The share of the points in the files that are gone, 0 to 1."""
        with self._guard:
            return 1.0 - self._count / len(self._labels) if len(self._labels) else 0.0

    @property
    def parameters(self) -> dict[str, str]:
        """What the files don't say about the index."""
        return {"deleted": str(self.deleted)}

    def link_to(self, folder: Path) -> None:
        """Write files of all that is there into another folder. Raises OSError."""
        import numpy as np

        with self._guard:
            labels, groups = self._recent.content()
            recent = np.array([group.encode() for group in groups], np.bytes_)
            present = self._present
            names, owners = np.unique(
                np.concatenate([self._names[self._owners[present]], recent]), return_inverse=True
            )
            labels = np.concatenate([self._labels[present], labels])
        order = np.argsort(labels, kind="stable")
        files: Mapping[str, Any] = {
            _LABELS: labels[order],
            _OWNERS: owners[order].astype(np.int32),
            _NAMES: names,
        }
        for name, array in files.items():
            with new_file(folder / name) as stream:
                np.save(stream, array)

    def begin_loading(self) -> None:
        """Until `end_loading`, what is added is only collected."""

    def end_loading(self) -> None:
        """Write what was added since `begin_loading` to an empty index. Raises OSError."""
        self.link_to(self._folder)
        with self._guard:
            self._recent = GroupIndex()
            self._map()

    def add(self, labels: npt.ArrayLike, groups: Sequence[str]) -> None:
        """Store the labels [n] with their groups [n]."""
        ids = as_labels(labels)
        with self._guard:
            _, known = self._places(ids)
            new = [at for at, is_known in enumerate(known.tolist()) if not is_known]
            if new:
                self._recent.add(ids[new], [groups[at] for at in new])

    def remove(self, labels: npt.ArrayLike) -> None:
        """Forget `labels`; unknown ones are ignored. `deleted` counts those that stay in files."""
        import numpy as np

        ids = np.unique(as_labels(labels))
        with self._guard:
            places, known = self._places(ids)
            self._present[places[known]] = False
            gone = int(known.sum())
            self._count -= gone
            self.deleted += gone
            self._recent.remove(ids)

    def labels_of(self, groups: Collection[str]) -> Labels:
        """The labels of these groups; unknown ones have none."""
        import numpy as np

        with self._guard:
            recent = self._recent.labels_of(groups)
            if not self._count or not groups:
                return recent
            encoded = np.unique(np.array([group.encode() for group in groups], np.bytes_))
            at = np.searchsorted(self._names, encoded).clip(max=len(self._names) - 1)
            among = np.zeros(len(self._names), np.bool_)
            among[at[self._names[at] == encoded]] = True
            return np.concatenate([self._labels[among[self._owners] & self._present], recent])

    def _map(self) -> None:
        import numpy as np

        if (self._folder / _LABELS).exists():
            arrays = [np.load(self._folder / name, mmap_mode="r") for name in (_LABELS, _OWNERS, _NAMES)]
        else:
            arrays = [np.empty(0, kind) for kind in (np.int64, np.int32, np.bytes_)]
        self._labels: Labels = arrays[0]
        self._owners: npt.NDArray[np.int32] = arrays[1]
        self._names: Any = arrays[2]
        self._count = len(self._labels)
        if self._count != len(self._owners):
            raise ValueError(f"the files in {self._folder} don't belong together")
        self._present = np.ones(self._count, np.bool_)

    def _places(self, labels: Labels) -> tuple[Labels, npt.NDArray[np.bool_]]:
        """For each label, where it would be in the files, and whether it is there."""
        import numpy as np

        if not len(self._labels):
            return np.zeros(len(labels), np.int64), np.zeros(len(labels), np.bool_)
        places = np.searchsorted(self._labels, labels).clip(max=len(self._labels) - 1)
        return places, (self._labels[places] == labels) & self._present[places]


def group_software() -> str:
    """All that the content of the files depends on, besides the rows."""
    return f"groups {_FORMAT}"
