"""Arrays that are made once and mapped by every process."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from kernel.sdk.operations import mapped

Made = dict[str, npt.NDArray[np.float32]]


def numbers() -> Made:
    return {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.zeros(0, np.float32),
        "c": np.arange(-3, 4, dtype=np.int8),
    }


def never() -> Made:
    raise AssertionError("the arrays must come from the file")


def only_file(home: Path) -> Path:
    (found,) = (path for path in (home / "cache").rglob("*") if path.is_file())
    return found


def test_arrays_are_made_once(tmp_path: Path) -> None:
    mapped.derived(tmp_path, "kind", "1", numbers)
    found = mapped.derived(tmp_path, "kind", "1", never)
    assert {name: array.tolist() for name, array in found.items()} == {
        "a": [[0, 1, 2], [3, 4, 5]],
        "b": [],
        "c": [-3, -2, -1, 0, 1, 2, 3],
    }
    assert only_file(tmp_path).stat().st_mode & 0o077 == 0


def damages(whole: bytes) -> Iterator[bytes]:
    """Cut short, empty, of another format, longer than it says, and with one byte changed in many places."""
    yield from (whole[:-1], b"", b"\xff" * 100, whole + b"x", (2).to_bytes(8, "little") + b"{}")
    for place in range(0, len(whole), 3):
        yield whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]


def test_a_damaged_file_is_made_again(tmp_path: Path) -> None:
    """Whatever the damage, the arrays are right, and the next to come finds them in the file."""
    mapped.derived(tmp_path, "kind", "1", numbers)
    file = only_file(tmp_path)
    for damaged in damages(file.read_bytes()):
        file.unlink()
        file.write_bytes(damaged)
        assert mapped.derived(tmp_path, "kind", "1", numbers)["a"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "kind"
    folder.mkdir(parents=True)
    old, young = folder / "1.safetensors.old.new", folder / "1.safetensors.young.new"
    for path in (old, young):
        path.touch()
    os.utime(old, (0, 0))
    mapped.derived(tmp_path, "kind", "1", numbers)
    assert {path.name for path in folder.iterdir()} == {young.name, "1.safetensors"}


def test_a_nearly_full_disk_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=50 * 2**20))
    assert mapped.derived(tmp_path, "kind", "1", numbers)["a"][1, 2] == 5
    assert len(caplog.records) == 1
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("home", [True, False])
def test_what_can_not_be_kept_is_refused(tmp_path: Path, home: bool) -> None:
    """With a home and without one alike: other kinds of numbers, and names that lead elsewhere."""
    place = tmp_path if home else None
    with pytest.raises(ValueError, match="only F32"):
        mapped.derived(place, "kind", "1", lambda: {"a": np.zeros(2, np.complex64)})
    for kind, version in (("../kind", "1"), ("kind", "/1"), ("", "1"), ("kind", "..")):
        with pytest.raises(ValueError, match="file's name"):
            mapped.derived(place, kind, version, numbers)
    assert not list(tmp_path.iterdir())


def test_an_array_in_pieces_is_kept_whole(tmp_path: Path) -> None:
    view = np.arange(12, dtype=np.float32).reshape(2, 6)[:, ::2]
    for place in (tmp_path, tmp_path, None):
        found = mapped.derived(place, "kind", "1", lambda: {"a": view})["a"]
        assert found.tolist() == view.tolist() and found.flags.c_contiguous


def test_another_version_takes_the_place_of_the_last(tmp_path: Path) -> None:
    """The old file is removed; processes that mapped it go on with it."""
    mapped.derived(tmp_path, "kind", "1", numbers)
    old = mapped.derived(tmp_path, "kind", "1", never)
    mapped.derived(tmp_path, "kind", "2", numbers)
    assert only_file(tmp_path).name == "2.safetensors"
    assert old["a"][1, 2] == 5


def test_other_kinds_stay(tmp_path: Path) -> None:
    for kind, version in (("kind", "1"), ("kind-of", "1"), ("kind", "2")):
        mapped.derived(tmp_path, kind, version, numbers)
    mapped.derived(tmp_path, "kind-of", "1", never)


def test_where_no_file_can_be_written_they_are_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A full disk, or a home that can't be written to, costs memory and nothing else."""
    (tmp_path / "cache").write_text("in the way")
    assert mapped.derived(tmp_path, "kind", "1", numbers)["a"][1, 2] == 5
    assert len(caplog.records) == 1


def test_without_a_home_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mapped.derived(None, "kind", "1", numbers).forget()
    assert not list(tmp_path.iterdir())


def test_what_is_written_into_an_array_stays_in_the_process(tmp_path: Path) -> None:
    mine = mapped.derived(tmp_path, "kind", "1", numbers)
    mine["a"][0, 0] = 7
    assert mapped.derived(tmp_path, "kind", "1", never)["a"][0, 0] == 0
    mine.forget()
    assert mine["a"][0, 0] == 0


def test_those_who_come_together_agree(tmp_path: Path) -> None:
    """Processes that start at once make the file several times, and one of them stays."""
    together = threading.Barrier(4)
    found: list[float] = []

    def slow() -> Made:
        together.wait()
        return numbers()

    def ask(make: Callable[[], Made]) -> None:
        found.append(float(mapped.derived(tmp_path, "kind", "1", make)["a"][1, 2]))

    threads = [threading.Thread(target=ask, args=(slow,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [5.0] * 4
    assert only_file(tmp_path).name == "1.safetensors"
