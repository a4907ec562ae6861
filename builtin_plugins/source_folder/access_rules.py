"""Who may read a file: by owner, groups, mode bits and access control lists, its own and the folders'."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

READ: Final = 4
PASS: Final = 1
_ACL: Final = "system.posix_acl_access"
_OTHER_ACLS: Final = ("system.nfs4_acl", "system.richacl", "system.cifs_acl")
"""Lists of file servers that the mode bits sum up at best: the bits may allow what the list denies."""
_ENTRY: Final = struct.Struct("<HHI")
_VERSION: Final = struct.pack("<I", 2)
_OWNER, _USER, _GROUP, _NAMED_GROUP, _MASK, _OTHER = 1, 2, 4, 8, 16, 32
_NONE: Final = {errno.ENODATA, errno.ENOTSUP, errno.EOPNOTSUPP}


@dataclass(frozen=True)
class AccessRule:
    """What may be done with a file or a folder: bits by user and group, as far as the mask leaves them."""

    owner: int
    owner_bits: int
    users: tuple[tuple[int, int], ...]
    groups: tuple[tuple[int, int], ...]
    other_bits: int

    def allows(self, user: int, groups: Collection[int], bit: int) -> bool:
        """Whether a user in these groups has a bit: the first entry that fits decides, of groups any."""
        if user == self.owner:
            return bool(self.owner_bits & bit)
        named = dict(self.users)
        if user in named:
            return bool(named[user] & bit)
        fitting = [bits for group, bits in self.groups if group in groups]
        if fitting:
            return any(bits & bit for bits in fitting)
        return bool(self.other_bits & bit)

    def is_open(self, bit: int) -> bool:
        """Whether everybody has the bit, without an exception."""
        entries = (self.owner_bits, self.other_bits, *dict(self.users).values())
        return all(bits & bit for bits in (*entries, *(bits for _, bits in self.groups)))

    def readers(self, bit: int) -> tuple[set[int], set[int]] | None:
        """The users and groups that have the bit; None if that can't be said without exceptions."""
        groups = {group for group, bits in self.groups if bits & bit}
        entries = {**dict(self.users), self.owner: self.owner_bits}
        denied = any(not bits & bit for bits in entries.values())
        if self.other_bits & bit or (denied and groups):
            return None
        return {user for user, bits in entries.items() if bits & bit}, groups


def rule_of(path: Path) -> AccessRule:
    """The rule of a file or folder, which is no link. Raises OSError."""
    status = os.lstat(path)
    acl = _acl_of(path)
    if acl is None:
        mode = status.st_mode
        return AccessRule(status.st_uid, mode >> 6 & 7, (), ((status.st_gid, mode >> 3 & 7),), mode & 7)
    single = {tag: bits for tag, bits, _ in acl}
    mask = single.get(_MASK, 7)
    users = tuple(sorted((who, bits & mask) for tag, bits, who in acl if tag == _USER))
    named = [(who, bits & mask) for tag, bits, who in acl if tag == _NAMED_GROUP]
    own = (status.st_gid, single[_GROUP] & mask)
    return AccessRule(status.st_uid, single[_OWNER], users, tuple(sorted([own, *named])), single[_OTHER])


def _acl_of(path: Path) -> list[tuple[int, int, int]] | None:
    """The entries (tag, bits, id) of its list; None if it has none. Raises OSError."""
    if any(_attribute(path, name) is not None for name in _OTHER_ACLS):
        raise OSError(errno.EINVAL, "its access control list is of an unknown kind")
    raw = _attribute(path, _ACL)
    if raw is None:
        return None
    if not raw.startswith(_VERSION) or (len(raw) - 4) % _ENTRY.size:
        raise OSError(errno.EINVAL, "its access control list is of an unknown kind")
    entries = list(_ENTRY.iter_unpack(raw[4:]))
    if not {_OWNER, _GROUP, _OTHER} <= {tag for tag, _, _ in entries}:
        raise OSError(errno.EINVAL, "its access control list is not complete")
    return entries


def _attribute(path: Path, name: str) -> bytes | None:
    """An extended attribute; None if it has none. Raises OSError."""
    if not hasattr(os, "getxattr"):
        return None
    try:
        return os.getxattr(path, name, follow_symlinks=False)
    except OSError as error:
        if error.errno in _NONE:
            return None
        raise


class AccessRules:
    """The rules along paths, each read once. `groups_of` are the groups of all users that are known."""

    def __init__(self, root: Path, groups_of: Mapping[int, Collection[int]]) -> None:
        self._root = root
        self._groups_of = groups_of
        self._rules: dict[Path, AccessRule] = {}
        self._readers_by_limits: dict[frozenset[tuple[AccessRule, int]], FileReaders] = {}

    def readers_of(self, path: str) -> FileReaders:
        """Who may read a file below the root; a link there needs the way to it, too. Raises OSError."""
        full_path = self._root / path
        place = full_path.resolve(strict=True)
        if not place.is_relative_to(self._root):
            raise FileNotFoundError(path)
        folders = {*place.parents, *full_path.parents}
        rules = frozenset((self._rule(one), PASS) for one in folders) | {(rule_of(place), READ)}
        limits = frozenset((rule, bit) for rule, bit in rules if not rule.is_open(bit))
        if limits not in self._readers_by_limits:
            self._readers_by_limits[limits] = self._evaluate(limits)
        return self._readers_by_limits[limits]

    def _rule(self, folder: Path) -> AccessRule:
        if folder not in self._rules:
            self._rules[folder] = rule_of(folder)
        return self._rules[folder]

    def _evaluate(self, limits: frozenset[tuple[AccessRule, int]]) -> FileReaders:
        if not limits:
            return FileReaders(everybody=True)
        if len(limits) == 1:
            [(rule, bit)] = limits
            if (both := rule.readers(bit)) is not None:
                return FileReaders(frozenset(both[0]), frozenset(both[1]))
        users = (user for user, groups in self._groups_of.items() if _passes(limits, user, groups))
        return FileReaders(frozenset(users))


def _passes(limits: Iterable[tuple[AccessRule, int]], user: int, groups: Collection[int]) -> bool:
    return all(rule.allows(user, groups, bit) for rule, bit in limits)


@dataclass(frozen=True)
class FileReaders:
    """Users and groups by number. Where groups don't say it, the users are named who are known."""

    users: frozenset[int] = frozenset()
    groups: frozenset[int] = frozenset()
    everybody: bool = False
