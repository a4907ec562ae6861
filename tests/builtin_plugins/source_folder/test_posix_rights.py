"""Who may read a file on the server may read it here: compared with what the kernel itself says."""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from builtin_plugins.source_folder.access_rules import READ, AccessRule, AccessRules
from builtin_plugins.source_folder.guarded_folder import GuardedFolderSource
from builtin_plugins.source_folder.name_service import NameService, ServerGroup, ServerUser
from builtin_plugins.sources.api import DocumentSource, SourceGrant, SourceItem
from builtin_plugins.sources.conformance import SourceWorld
from builtin_plugins.sources.conformance_rights import GuardedConformance, GuardedWorld
from tests.builtin_plugins.source_folder.test_folder import FolderWorld

USERS = {1: {1}, 2: {2, 100}, 3: {3, 100, 200}, 4: {4, 200}, 5: {5}}
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder that everybody may pass."""
    place = Path(tempfile.mkdtemp(dir="/tmp"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


def acl(owner: int, group: int, other: int, mask: int, *named: tuple[int, int, int]) -> bytes:
    """A list as the disk has it; `named` are tag (2 user, 8 group), number and bits."""
    entries = [(1, owner, 0), *((tag, bits, who) for tag, who, bits in named if tag == 2), (4, group, 0)]
    entries += [(tag, bits, who) for tag, who, bits in named if tag == 8]
    entries += [(16, mask, 0), (32, other, 0)]
    packed = (
        struct.pack("<HHI", tag, bits, who if tag in (2, 8) else 2**32 - 1) for tag, bits, who in entries
    )
    return struct.pack("<I", 2) + b"".join(packed)


def read_by(rules: AccessRules, path: str) -> set[int]:
    """The users who may read it, as an account here would be found: by name or by a group."""
    found = rules.readers_of(path)
    if found.everybody:
        return set(USERS)
    return set(found.users) | {user for user, groups in USERS.items() if groups & found.groups}


def may_read(path: Path, user: int, groups: Collection[int]) -> bool:
    """What the kernel says to a process of this user."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups(list(groups))
            os.setgid(user)
            os.setuid(user)
            path.open("rb").close()
        except PermissionError:
            os._exit(1)
        except BaseException:  # noqa: BLE001 - of the child, to the parent
            os._exit(2)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 1)
    return status == 0


@pytest.mark.long
@as_root
def test_every_mode_is_read_as_the_kernel_reads_it(root: Path) -> None:
    """Owner, group and others, of a file and of the folder above, and lists; denials too."""
    folder, file = root / "folder", root / "folder/file.txt"
    folder.mkdir()
    file.write_text("x")
    cases: list[tuple[int, int, bytes | None]] = [
        (above, mode, None)
        for above in (0o755, 0o750, 0o700, 0o705, 0o061)
        for mode in (0o644, 0o640, 0o600, 0o604, 0o044, 0o040, 0o004, 0o000)
    ]
    lists = [
        acl(6, 4, 0, 7, (2, 4, 4)),
        acl(6, 0, 4, 7, (2, 4, 0)),
        acl(6, 4, 0, 0, (2, 4, 4)),
        acl(0, 4, 0, 7, (8, 200, 4)),
        acl(6, 0, 4, 7, (8, 200, 0), (8, 100, 4)),
    ]
    cases += [(above, 0o640, one) for above in (0o755, 0o750) for one in lists]
    os.chown(folder, 2, 100)
    os.chown(file, 3, 200)
    for above, mode, entries in cases:
        folder.chmod(above)
        file.chmod(mode)
        if entries is not None:
            try:
                os.setxattr(file, "system.posix_acl_access", entries)
            except OSError:
                pytest.skip("this disk has no access control lists")
        said = {user for user, groups in USERS.items() if may_read(file, user, groups)}
        assert read_by(AccessRules(root, USERS), "folder/file.txt") == said, (oct(above), oct(mode), entries)


@as_root
def test_a_link_needs_the_way_to_it_and_leads_nowhere_else(root: Path) -> None:
    (root / "closed").mkdir(mode=0o700)
    (root / "open.txt").write_text("x")
    (root / "closed/link.txt").symlink_to(root / "open.txt")
    (root / "out.txt").symlink_to("/etc/hostname")
    os.chown(root / "closed", 4, 4)
    rules = AccessRules(root, USERS)
    assert (rules.readers_of("open.txt").everybody, read_by(rules, "closed/link.txt")) == (True, {4})
    with pytest.raises(FileNotFoundError):
        rules.readers_of("out.txt")


@pytest.mark.parametrize("name", ["system.nfs4_acl", "system.cifs_acl"])
def test_lists_of_file_servers_are_not_read_as_modes(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Their mode bits may allow what the list denies: nobody may read such a file."""
    file, read = root / "file.txt", os.getxattr
    file.write_text("x")
    assert AccessRules(root, USERS).readers_of("file.txt").everybody

    def of_server(path: Path, asked: str, **options: bool) -> bytes:
        return b"x" if (path, asked) == (file, name) else read(path, asked, **options)

    monkeypatch.setattr(os, "getxattr", of_server)
    with pytest.raises(OSError, match="unknown kind"):
        AccessRules(root, USERS).readers_of("file.txt")


def test_groups_stay_groups_where_they_say_it() -> None:
    """So that a new member needs no look at the files; where a denial intervenes, people are named."""
    assert AccessRule(1, 6, (), ((100, 4),), 0).readers(READ) == ({1}, {100})
    assert AccessRule(1, 0, (), ((100, 4),), 0).readers(READ) is None
    assert AccessRule(1, 6, ((2, 0),), ((100, 4),), 0).readers(READ) is None
    assert AccessRule(1, 6, (), ((100, 0),), 4).readers(READ) is None


class ListedNames(NameService):
    """People and groups of a test, in place of the server's."""

    def __init__(self) -> None:
        self.members: dict[str, tuple[str, ...]] = {"staff": (), "board": ()}

    def users(self) -> Sequence[ServerUser]:
        numbers = {"ann": 60001, "bob": 60002, "cleo": 60003}
        return [ServerUser(name, number, number) for name, number in numbers.items()]

    def groups(self) -> Sequence[ServerGroup]:
        numbers = {"staff": 60101, "board": 60102}
        return [ServerGroup(name, numbers[name], members) for name, members in self.members.items()]


class GuardedFolderWorld(FolderWorld, GuardedWorld):
    """A folder on the disk, with access control lists."""

    people = ("ann", "bob", "cleo")
    groups = ("staff", "board")

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.names = ListedNames()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[DocumentSource]:
        yield GuardedFolderSource(self.root, None, self.names)

    async def grant(self, path: str, grant: SourceGrant) -> None:
        users = {one.name: one.number for one in self.names.users()}
        groups = {one.name: one.number for one in self.names.groups()}
        named = [(2, users[one], 4) for one in grant.people] + [(8, groups[one], 4) for one in grant.groups]
        entries = acl(6, 0, 4 if grant.everybody else 0, 7, *named)
        if grant.everybody:
            (self.root / path).chmod(0o644)
            return
        os.setxattr(self.root / path, "system.posix_acl_access", entries)

    async def set_group(self, group: str, people: tuple[str, ...]) -> None:
        self.names.members[group] = people

    def rights_cut_off(self) -> AbstractAsyncContextManager[object]:
        return self.cut_off()


@as_root
class TestGuardedFolder(GuardedConformance):
    """The suite for sources with permissions."""

    @pytest.fixture
    def world(self, root: Path) -> SourceWorld:
        place = root / "root"
        place.mkdir()
        return GuardedFolderWorld(place)


async def test_names_of_the_server_are_the_people(root: Path) -> None:
    """With a domain, they have addresses; a file that is gone is read by nobody."""
    (root / "a.txt").write_text("x")
    (root / "a.txt").chmod(0o600)
    source = GuardedFolderSource(root, "example.org", NameService())
    people = {one.id: one for one in (await source.directory()).people}
    assert people["root"].email == "root@example.org"
    items = [SourceItem(name, "1", name) for name in ("a.txt", "gone.txt")]
    owner = next(name for name, one in people.items() if one.id == (root / "a.txt").owner())
    assert await source.grants(items) == {"a.txt": SourceGrant([owner], [])}


@as_root
async def test_of_people_and_groups_of_one_name_the_first_counts(root: Path) -> None:
    """As the server looks names up: the other one is somebody else, and must not read what is Ann's."""

    class TwoDirectories(ListedNames):
        def users(self) -> Sequence[ServerUser]:
            return [*super().users(), ServerUser("ann", 61001, 61001), ServerUser("dora", 61004, 60101)]

        def groups(self) -> Sequence[ServerGroup]:
            return [*super().groups(), ServerGroup("staff", 61101, ("bob",))]

    for number, place in enumerate(("ann", "other-ann", "staff", "other-staff")):
        (root / place).write_text("x")
        (root / place).chmod(0o600 if number < 2 else 0o040)
        os.chown(root / place, (60001, 61001, 60003, 60003)[number], (60101, 60101, 60101, 61101)[number])
    source = GuardedFolderSource(root, None, TwoDirectories())
    directory = await source.directory()
    grants = await source.grants([SourceItem(one, "1", one) for one in ("ann", "other-ann")])
    assert grants == {"ann": SourceGrant(["ann"], []), "other-ann": SourceGrant([], [])}
    assert {one.id: one.people for one in directory.groups} == {"staff": ["dora"], "board": []}
    grants = await source.grants([SourceItem(one, "1", one) for one in ("staff", "other-staff")])
    assert (grants["staff"].people, grants["other-staff"]) == (["dora"], SourceGrant([], []))
