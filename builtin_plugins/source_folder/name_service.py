"""The users and groups of the server, as its name service lists them."""

from __future__ import annotations

import grp
import pwd
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ServerUser:
    """A user: name, number, the number of the main group, and the name in full."""

    name: str
    number: int
    group: int
    full_name: str = ""


@dataclass(frozen=True)
class ServerGroup:
    """A group, and the names of the users in it, without those whose main group it is."""

    name: str
    number: int
    members: Sequence[str] = ()


class NameService:
    """What the server says now."""

    def users(self) -> Sequence[ServerUser]:
        """All that it lists; of several with one number, the first counts."""
        return [
            ServerUser(one.pw_name, one.pw_uid, one.pw_gid, one.pw_gecos.partition(",")[0])
            for one in pwd.getpwall()
        ]

    def groups(self) -> Sequence[ServerGroup]:
        """The same of groups."""
        return [ServerGroup(one.gr_name, one.gr_gid, tuple(one.gr_mem)) for one in grp.getgrall()]
