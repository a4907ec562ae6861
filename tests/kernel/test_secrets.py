"""Named secrets: private files, names that stay names, two processes that agree."""

from __future__ import annotations

import os
import re
import stat
import threading
from pathlib import Path

import pytest

from kernel.auth.secrets import SecretStore
from kernel.errors import StartupError
from kernel.testing import Start


@pytest.fixture
def store(tmp_path: Path) -> SecretStore:
    return SecretStore(tmp_path / "home", {})


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_set_get_remove(store: SecretStore) -> None:
    """A secret is what was stored, until it is removed."""
    assert store.get("github") is None
    store.set("github", "s3cret ü\n")
    assert (store.get("github"), store.names()) == ("s3cret ü\n", ["github"])
    assert (store.remove("github"), store.remove("github")) == (True, False)
    assert (store.get("github"), store.names()) == (None, [])


def test_modes(store: SecretStore, tmp_path: Path) -> None:
    """Files are 0600 and their folder 0700, from the first byte on, and when one is replaced."""
    for value in ("first", "second"):
        store.set("github", value)
        assert mode(tmp_path / "home" / "secrets" / "github") == 0o600
    store.ensure("made")
    assert mode(tmp_path / "home" / "secrets" / "made") == 0o600
    assert mode(tmp_path / "home" / "secrets") == 0o700


def test_durable(store: SecretStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was stored or removed is so after a loss of power: the folder's entries are on the disk, too."""
    folder, synced, sync = tmp_path / "home" / "secrets", 0, os.fsync

    def fsync(descriptor: int) -> None:
        nonlocal synced
        synced += os.path.samestat(os.fstat(descriptor), folder.stat())
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    store.set("github", "x")
    assert synced == 1
    store.ensure("made")
    assert synced == 2
    store.remove("github")
    assert synced == 3


def test_the_environment_wins(tmp_path: Path) -> None:
    store = SecretStore(
        tmp_path, {"PLATFORM_SECRET_CRM_FORM_KEY": "from outside", "PLATFORM_SECRET_EMPTY": ""}
    )
    store.set("crm-form.key", "from file")
    store.set("empty", "from file")
    assert (store.get("crm-form.key"), store.get("empty")) == ("from outside", "from file")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../jwt-secret", "a/b", "A", "a b", "a\n", "-a", "a" * 101, "ü"]
)
def test_names(store: SecretStore, name: str) -> None:
    """What is no plain name is refused: it could be a path."""
    for call in (store.get, store.remove, store.ensure, lambda n: store.set(n, "x")):
        with pytest.raises(ValueError, match=re.escape(f"'{name[:40]}'")):
            call(name)


def test_made_at_random_once(store: SecretStore) -> None:
    """A secret that is not there is made, long and random, and stays."""
    first = store.ensure("made")
    assert len(first) >= 48
    assert store.ensure("made") == first
    assert store.ensure("other") != first


def test_many_agree(tmp_path: Path) -> None:
    found: list[str] = []
    start = threading.Barrier(8)

    def ensure() -> None:
        start.wait()
        found.append(SecretStore(tmp_path, {}).ensure("jwt-secret"))

    threads = [threading.Thread(target=ensure) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(found), len(set(found))) == (8, 1)
    assert list((tmp_path / "secrets").iterdir()) == [tmp_path / "secrets" / "jwt-secret"]


def test_an_empty_file(store: SecretStore, tmp_path: Path) -> None:
    """An empty secret file, left by a full disk, is refused."""
    (tmp_path / "home" / "secrets").mkdir(parents=True)
    (tmp_path / "home" / "secrets" / "made").touch()
    with pytest.raises(StartupError, match="'made'"):
        store.ensure("made")


async def test_of_a_fresh_home(start_platform: Start, platform_home: Path) -> None:
    """Everything secret in a fresh home is the owner's alone."""
    await start_platform()
    private = [platform_home, platform_home / "secrets", platform_home / "secrets" / "jwt-secret"]
    assert [_mode(path) & 0o077 for path in private] == [0, 0, 0]


def _mode(path: Path) -> int:
    return path.stat().st_mode
