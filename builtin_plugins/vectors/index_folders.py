"""Where search indexes are saved beside the database, and where each process works on its own.

```
PLATFORM_HOME/vectors/saved/COLLECTION/KIND-BUILT-TOKEN/   a saved index; never changed, only replaced
                     /saved/COLLECTION.PURPOSE.lock        held by the one process that replaces it
                     /working/NUMBER.lock                  held by a process while it runs
                     /working/NUMBER/COLLECTION-KIND-BUILT-ID/
```

A process never works on a saved index: it links the files (`link(2)`) into a folder of its own and changes
that. Files of an index are written once, so all processes map the same ones, and saving is linking back.
"""

from __future__ import annotations

import fcntl
import logging
import math
import os
import re
import shutil
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from builtin_plugins.vectors.index_manifest import IndexManifest, is_whole, read_manifest, write_manifest
from builtin_plugins.vectors.settings import VectorSettings
from kernel.sdk import StoreNeeds, sync

log = logging.getLogger("platform.vectors")

_FOLDER = "vectors"
_MOST_PROCESSES = 1000
_SPARE = 256 * 2**20  # bytes to leave free on the disk
_SAVED = re.compile(r"(?P<kind>[a-z]+)-(?P<built>\d+)-(?P<token>[0-9a-f]{32})")
_WORKING = re.compile(r"(?P<collection>\d+)-(?P<kind>[a-z]+)-(?P<built>\d+)-[0-9a-f]{32}")
_UNFINISHED = "new-"
KEEP = "keep search indexes"
"""The action that `try_again` repeats."""
_MARK = "deletions"  # with a kind, in the folder of a collection: since when files hold something deleted


class SavedIndex(NamedTuple):
    """A saved index and where it is."""

    folder: Path
    manifest: IndexManifest


class IndexFolders:
    """The folders of one home. All methods block, and may be called from any thread."""

    def __init__(self, home: Path, clear_within: float = 3600.0) -> None:
        """`clear_within` is the time in seconds within which deleted content leaves the files."""
        self.clear_within = clear_within
        self._root = home / _FOLDER
        self._guard = threading.Lock()
        self._own: Path | None = None
        self._release: Callable[[], None] = lambda: None
        self._faults: dict[str, str] = {}

    @property
    def fault(self) -> str | None:
        """Why indexes can't be saved or read at the moment; None if they can."""
        return next(iter(self._faults.values()), None)

    @contextmanager
    def blame(self, action: str) -> Iterator[None]:
        """Note an OSError of the block as a fault; a later success of the same action clears it."""
        try:
            yield
        except OSError as error:
            with self._guard:
                is_repeated = action in self._faults
                self._faults[action] = f"can't {action} in {self._root}: {error.strerror or error}"
            if not is_repeated:
                log.warning("%s", self._faults[action])
        else:
            with self._guard:
                self._faults.pop(action, None)

    def new_working(self, collection: int, kind: str, built_at: float) -> Path | None:
        """An empty folder of this process; None if there can't be one."""
        with self.blame(KEEP):
            own = self._roomy_folder()
            folder = own / f"{collection}-{kind}-{int(built_at * 1000)}-{uuid.uuid4().hex}"
            folder.mkdir(mode=0o700)
            return folder
        return None

    def try_again(self) -> None:
        """Find out whether what kept this process from having folders has ended."""
        if KEEP in self._faults:
            with self.blame(KEEP):
                self._roomy_folder()

    def bind(self, index: object, folder: Path) -> None:
        """Remove a working folder as soon as nothing uses its index any more."""
        weakref.finalize(index, shutil.rmtree, folder, ignore_errors=True)

    def saved(self, collection: int, kind: str) -> SavedIndex | None:
        """The latest saved index that says what it is; its files are not looked at."""
        read = [(folder, read_manifest(folder)) for folder, _ in self._saved(collection, kind)]
        candidates = [SavedIndex(folder, manifest) for folder, manifest in read if manifest is not None]
        return max(
            candidates, key=lambda index: (index.manifest.built_at, index.manifest.version), default=None
        )

    def borrow(self, saved: SavedIndex) -> Path | None:
        """A working folder with a saved index; None if it is not whole or can't be linked."""
        manifest = saved.manifest
        folder = self.new_working(manifest.collection, manifest.kind, manifest.built_at)
        if folder is None:
            return None
        try:
            for name in manifest.files:
                os.link(saved.folder / name, folder / name)
            if is_whole(folder, manifest):
                return folder
            log.warning("the saved index %s is damaged and is built again", saved.folder)
            shutil.rmtree(saved.folder, ignore_errors=True)
        except OSError as error:
            log.info("the saved index %s can't be used: %s", saved.folder, error)
        shutil.rmtree(folder, ignore_errors=True)
        return None

    def new_saved(self, collection: int) -> Path:
        """A folder to fill and then `publish`. Raises OSError."""
        parent = self._of(collection)
        for path in (self._root, self._root / "saved", parent):
            path.mkdir(exist_ok=True, mode=0o700)
        folder = parent / f"{_UNFINISHED}{uuid.uuid4().hex}"
        folder.mkdir(mode=0o700)
        return folder

    def publish(self, folder: Path, manifest: IndexManifest) -> None:
        """Make the filled folder the saved index, and remove earlier ones. Raises OSError."""
        write_manifest(folder, manifest)
        name = f"{manifest.kind}-{int(manifest.built_at * 1000)}-{manifest.token}"
        folder.rename(folder.with_name(name))
        sync(folder.parent)
        for other in folder.parent.iterdir():
            earlier = _SAVED.fullmatch(other.name)
            if other.name.startswith(_UNFINISHED) or (
                earlier is not None and earlier["kind"] == manifest.kind and other.name != name
            ):
                shutil.rmtree(other, ignore_errors=True)

    @contextmanager
    def turn(self, collection: int, purpose: str) -> Iterator[bool]:
        """Whether this process is the one that does it for a collection during the block. Raises OSError."""
        for path in (self._root, self._root / "saved"):
            path.mkdir(exist_ok=True, mode=0o700)
        with (self._root / "saved" / f"{collection}.{purpose}.lock").open("a") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def collections(self) -> set[int]:
        """The collections of which anything is saved."""
        return {int(path.name) for path in _entries(self._root / "saved") if path.name.isdecimal()}

    def mark(self, collection: int, kind: str) -> float:
        """For how many seconds files have been known to hold something deleted, from the first call.

        If the clock was set back since, nobody knows: infinitely many.
        """
        mark = self._of(collection) / f"{_MARK}.{kind}"
        with suppress(OSError):
            if not mark.exists():
                mark.parent.mkdir(exist_ok=True, mode=0o700)
                mark.touch(mode=0o600)
                return 0.0
            age = time.time() - mark.stat().st_mtime
            return age if age >= 0 else math.inf
        return math.inf

    def unmark(self, collection: int, kind: str) -> None:
        """Nothing deleted is in the files of this kind any more."""
        with suppress(OSError):
            (self._of(collection) / f"{_MARK}.{kind}").unlink(missing_ok=True)

    def drop(self, collection: int) -> None:
        """Remove what is saved of a collection, and what is left of processes that were killed."""
        shutil.rmtree(self._of(collection), ignore_errors=True)
        for lock in (self._root / "saved").glob(f"{collection}.*.lock"):
            with suppress(OSError):
                lock.unlink(missing_ok=True)

    def older_than(self, moment: float, collections: set[int], existing: set[int]) -> int:
        """How many indexes on this disk may hold what was deleted at `moment`: those built before.

        Also those that a killed process didn't finish, and those built later than now: the clock was set
        back. Of `collections`, and of all that are not in `known` (those that exist).
        """
        now = time.time()
        built = [
            (int(match["collection"]), int(match["built"]))
            for own in _entries(self._root / "working")
            for path in _entries(own)
            if (match := _WORKING.fullmatch(path.name))
        ]
        for number in self.collections():
            built += [(number, at) for _, at in self._saved(number)]
            unfinished = (path.name.startswith(_UNFINISHED) for path in _entries(self._of(number)))
            built += [(number, -1) for is_unfinished in unfinished if is_unfinished]
        return sum(
            not moment * 1000 <= at <= now * 1000 and (number in collections or number not in existing)
            for number, at in built
        )

    def sweep_saved(self, collection: int, tokens: Collection[str], kinds: Collection[str]) -> None:
        """Remove what was never finished, what the database doesn't know, and what the store doesn't use;
        only in its `turn`.
        """
        for path in _entries(self._of(collection)):
            match = _SAVED.fullmatch(path.name)
            unused = match is not None and (match["token"] not in tokens or match["kind"] not in kinds)
            if unused or path.name.startswith(_UNFINISHED):
                shutil.rmtree(path, ignore_errors=True)

    def remove(self, saved: SavedIndex) -> None:
        """Remove a saved index; only in the `turn` of its collection."""
        shutil.rmtree(saved.folder, ignore_errors=True)

    def size(self) -> int:
        """Bytes of what is saved."""
        size = 0
        for file in (self._root / "saved").rglob("*"):
            with suppress(OSError):
                size += file.stat().st_size
        return size

    def sweep(self) -> None:
        """Remove what killed processes have left."""
        for lock in (self._root / "working").glob("*.lock"):
            with suppress(OSError), lock.open("a") as handle:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.with_suffix(""), ignore_errors=True)

    def close(self) -> None:
        """Remove this process's folder."""
        with self._guard:
            own, self._own = self._own, None
            if own is not None:
                shutil.rmtree(own, ignore_errors=True)
                self._release()

    def _roomy_folder(self) -> Path:
        """This process's folder. Raises OSError, also if the disk is almost full."""
        own = self._own_folder()
        if shutil.disk_usage(own).free < _SPARE:
            raise OSError(f"the disk has less than {_SPARE // 2**20} MB left")
        return own

    def _own_folder(self) -> Path:
        from kernel.sdk.operations import take_slot  # brings the parsers of settings: not at each start

        with self._guard:
            if self._own is None:
                self._root.mkdir(exist_ok=True, mode=0o700)
                working = self._root / "working"
                working.mkdir(exist_ok=True, mode=0o700)
                slot = take_slot(working, _MOST_PROCESSES)
                self._own, self._release = working / str(slot.number), slot.handle.close
                shutil.rmtree(self._own, ignore_errors=True)
            self._own.mkdir(exist_ok=True, mode=0o700)
            return self._own

    def _of(self, collection: int) -> Path:
        return self._root / "saved" / str(collection)

    def _saved(self, collection: int, kind: str | None = None) -> list[tuple[Path, int]]:
        """The folders of saved indexes, with the milliseconds since 1970 at which they were built."""
        matches = [(path, _SAVED.fullmatch(path.name)) for path in _entries(self._of(collection))]
        return [
            (path, int(match["built"])) for path, match in matches if match and kind in (None, match["kind"])
        ]


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def index_folders(needs: StoreNeeds) -> IndexFolders | None:
    """The folders that the settings allow; None if indexes are only in memory."""
    settings = needs.settings_of(VectorSettings)
    if settings.save_indexes:
        return IndexFolders(needs.settings.home, settings.clear_seconds)
    shutil.rmtree(needs.settings.home / _FOLDER / "saved", ignore_errors=True)  # nobody would clear it
    IndexFolders(needs.settings.home).sweep()
    return None
