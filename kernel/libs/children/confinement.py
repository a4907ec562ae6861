"""What a child process may reach: files by Landlock, the network by seccomp (Linux); neither needs root."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION: Final = 1
_PR_GET_SECCOMP, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 21, 22, 38
_FILTER: Final = 2
_EACCES: Final = 13

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1, 2, 4, 8, 1 << 14
_REMOVE_FILE, _MAKE_DIR, _MAKE_REG = 1 << 5, 1 << 7, 1 << 8
_READ: Final = _EXECUTE | _READ_FILE | _READ_DIR
_WRITE: Final = _READ_FILE | _READ_DIR | _WRITE_FILE | _TRUNCATE | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
# The rights that each version of Landlock knows: 12 at first, then moving, truncating, devices.
_RIGHTS: Final = ((1, 0x1FFF), (2, 0x3FFF), (3, 0x7FFF), (5, 0xFFFF))
_TCP: Final = 3  # since version 4: binding and connecting
_SCOPES: Final = 3  # since version 6: abstract sockets, and signals to processes outside

# Where programs and their libraries, fonts, languages and time zones are; nothing of the platform.
_SYSTEM: Final = (
    *("/usr", "/lib", "/lib64", "/bin", "/nix/store", "/opt/homebrew"),
    *("/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types", "/etc/fonts", "/etc/alternatives"),
    *("/etc/nsswitch.conf", "/etc/passwd"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system/cpu"),
    *("/dev/urandom", "/dev/random", "/dev/zero"),
)
_DEVICES: Final = ("/dev/null",)

# System calls that reach other machines, other processes, or more of the kernel, by architecture:
# (audit number, calls).
_CALLS: Final = {
    # socket, ptrace, unshare, keyctl, add_key, request_key, perf_event_open, setns, process_vm_readv and
    # _writev, bpf, userfaultfd, io_uring_setup, pidfd_getfd
    "x86_64": (0xC000003E, (41, 101, 272, 250, 248, 249, 298, 308, 310, 311, 321, 323, 425, 438)),
    "aarch64": (0xC00000B7, (198, 117, 97, 219, 217, 218, 241, 268, 270, 271, 280, 282, 425, 438)),
}
_X32: Final = 0x40000000


class Reach(NamedTuple):
    """The files and folders that a child may read and write, beside the programs of the system."""

    reads: list[str] = []
    writes: list[str] = []


def missing_confinement() -> list[str]:
    """What this kernel lacks to confine children: ``Landlock``, ``seccomp``; empty if it has both."""
    if sys.platform != "linux":
        return ["Landlock", "seccomp"]
    lacks = [] if _landlock_version() > 0 else ["Landlock"]
    has_filters = os.uname().machine in _CALLS and ctypes.CDLL(None).prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) >= 0
    return lacks if has_filters else [*lacks, "seccomp"]


def confine(reach: Reach) -> None:
    """Confine this process and all that it starts, permanently, as far as the kernel can.

    Raises OSError if the kernel can, but refuses.
    """
    lacks = missing_confinement()
    if sys.platform != "linux":
        return
    _check(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    if "Landlock" not in lacks:
        _restrict_files(reach, _landlock_version())
    if "seccomp" not in lacks:
        _forbid_calls(*_CALLS[os.uname().machine])


def _landlock_version() -> int:
    return _call(_CREATE_RULESET, None, 0, _VERSION)


def _restrict_files(reach: Reach, version: int) -> None:
    handled = next(rights for since, rights in reversed(_RIGHTS) if version >= since)
    fields = [handled, *([_TCP] if version >= 4 else []), *([_SCOPES] if version >= 6 else [])]
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    ruleset = _check(_call(_CREATE_RULESET, attributes, len(attributes), 0))
    try:
        for path in (*_SYSTEM, *python_files(), *reach.reads):
            _allow(ruleset, path, _READ & handled)
        for path in (*_DEVICES, *reach.writes):
            _allow(ruleset, path, _WRITE & handled)
        _check(_call(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # not there: nothing to allow
        return
    try:
        allowed = rights if os.path.isdir(path) else rights & _OF_FILES  # noqa: PTH112 - before the fork's end
        _check(_call(_ADD_RULE, ruleset, 1, struct.pack("=Qi", allowed, opened), 0))
    finally:
        os.close(opened)


@cache
def python_files() -> tuple[str, ...]:
    """The interpreter, and what can be imported; of a folder with other files, only its packages.

    Called once before the forks.
    """
    return tuple(_python_files())


def _python_files() -> Iterator[str]:
    own = [Path(prefix).resolve() for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix}]
    yield from map(str, own)
    for entry in dict.fromkeys(filter(None, sys.path)):
        place = Path(entry).resolve()
        if any(place.is_relative_to(prefix) for prefix in own) or not place.is_dir():
            continue
        if place.name in ("site-packages", "dist-packages"):
            yield str(place)
            continue
        for item in place.iterdir():
            if item.suffix in (".py", ".so", ".dist-info", ".egg-info") or (item / "__init__.py").is_file():
                yield str(item)


def _forbid_calls(architecture: int, calls: tuple[int, ...]) -> None:
    """Refuse the calls with EACCES, and every call of another architecture."""
    count = len(calls)
    program = [  # (operation, steps to skip if true, if false, value)
        (0x20, 0, 0, 4),  # load the architecture
        (0x15, 0, count + 3, architecture),  # another one: refuse
        (0x20, 0, 0, 0),  # load the call's number
        (0x35, count + 1, 0, _X32),  # the second set of numbers of x86: refuse
        *((0x15, count - place, 0, call) for place, call in enumerate(calls)),
        (0x06, 0, 0, 0x7FFF0000),  # allow
        (0x06, 0, 0, 0x00050000 | _EACCES),  # refuse
    ]
    instructions = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    head = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(instructions)))
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.c_void_p(ctypes.addressof(head)), 0, 0))


def _call(number: int, *arguments: int | bytes | None) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    c_arguments = [ctypes.c_long(item) if isinstance(item, int) else item for item in arguments]
    result: int = libc.syscall(ctypes.c_long(number), *c_arguments)
    return result


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"a child can't be confined: {os.strerror(number)}")
    return result
