"""The checks of `platformctl doctor` that need no platform: packages, files, ports."""

from __future__ import annotations

import json
import os
import platform as machine
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from http.client import HTTPException
from importlib import metadata
from pathlib import Path
from shlex import quote
from socket import create_connection, gaierror
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

from packaging.requirements import Requirement

from cli import running
from kernel.libs.children.confinement import missing_confinement
from kernel.plugins.diagnostics import Finding
from kernel.plugins.loading import GROUP
from kernel.process.server import bind
from kernel.stores.disk import DiskSpace

DISTRIBUTION = "platform-kernel"
_FREE_BYTES = 1 << 30
_REPAIR = "Linux makes a disk with errors read-only: see dmesg, then check it and mount it again."
_ANSWERS = {"platform_answers": True}
_CONFINE = (
    "Use Linux 5.13 or later with Landlock enabled (lsm=landlock,…), on x86-64 or ARM64; in a container, use "
    "a seccomp profile that permits it."
)
_MAKE_ROOM = "Free some space, or move PLATFORM_HOME to a larger disk."


def check_python() -> Finding:
    """Report the Python interpreter."""
    return Finding("python", "ok", f"{sys.version.split()[0]} on {machine.system()} {machine.machine()}")


def check_packages() -> Iterator[Finding]:
    """Check that the platform's dependencies are installed in suitable versions."""
    try:
        requirements = [Requirement(line) for line in metadata.requires(DISTRIBUTION) or ()]
    except metadata.PackageNotFoundError:
        yield Finding("packages", "failed", f"{DISTRIBUTION} is not installed", "Run ./setup.sh.")
        return
    problems = [text for item in requirements if (text := _unmet(item))]
    different = [text for item in _locked() if (text := _unmet(item))]
    if problems:
        yield Finding("packages", "failed", "; ".join(problems), "Run ./setup.sh to repair the environment.")
    elif different:
        examples = ", ".join(different[:5]) + (" …" if len(different) > 5 else "")
        yield Finding(
            "packages",
            "warning",
            f"versions differ from requirements.lock: {examples}",
            "Run ./setup.sh to install the locked versions.",
        )
    else:
        yield Finding("packages", "ok", f"all {len(requirements)} requirements are installed")
    for name, unmet in _unmet_of_plugins():
        yield Finding(
            "packages",
            "warning",
            f"{name}: {', '.join(unmet)}",
            f"Install a release that fits: platformctl plugins install {name}",
        )


def _unmet_of_plugins() -> Iterator[tuple[str, list[str]]]:
    """Unmet requirements of added plugins: pip warns about these, but installs the plugins all the same."""
    packages = {point.dist.name: point.dist for point in metadata.entry_points(group=GROUP) if point.dist}
    packages.pop(DISTRIBUTION, None)
    for name, package in sorted(packages.items()):
        if unmet := [text for line in package.requires or () if (text := _unmet(Requirement(line)))]:
            yield name, unmet


def _unmet(requirement: Requirement) -> str | None:
    if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
        return None
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return f"{requirement.name} is missing"
    fits = requirement.specifier.contains(version, prereleases=True)
    return None if fits else f"{requirement.name} {version} is not {requirement.specifier}"


def _is_light() -> bool:
    """Whether `./setup.sh --light` made this environment."""
    return (Path(sys.prefix) / "made-for-light").exists()


def _locked() -> list[Requirement]:
    """The pins of a checkout's lock file; none in an installed wheel."""
    checkout = Path(__file__).resolve().parent.parent
    name = "requirements-light.lock" if _is_light() else "requirements.lock"
    lock = checkout / name
    lines = lock.read_text(encoding="utf-8").splitlines() if lock.is_file() else []
    return [Requirement(line.removesuffix("\\")) for line in lines if line and line[0] not in "# "]


def check_confinement() -> Finding:
    """Check that the kernel can confine parsers and programs to the files that they are given."""
    if lacks := missing_confinement():
        text = (
            "parsers and the programs that read what others sent (tesseract, ffmpeg, espeak-ng …) are "
            f"limited, but not confined: this kernel lacks {' and '.join(lacks)}"
        )
        return Finding("children", "warning", text, _CONFINE)
    return Finding("children", "ok", "parsers and programs are confined to the files that they are given")


def check_home(home: Path) -> Iterator[Finding]:
    """Check that the home is private to its owner and writable."""
    if not home.exists():
        yield _check_room_for(home)
        return
    if not home.is_dir() or not os.access(home, os.W_OK | os.X_OK):
        yield Finding(
            "home", "failed", f"{home} is not a writable folder", "Set PLATFORM_HOME to a writable folder."
        )
        return
    strange = _of_others(home)
    if _others_may(home):
        yield Finding("home", "warning", f"other users can access {home}", f"chmod 700 {quote(str(home))}")
    elif not strange:
        yield Finding("home", "ok", str(home))
    if strange:
        owner = running.owner_of(home)
        more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
        text = f"{owner}, who owns {home}, does not own {strange[0]}{more}"
        closed = not all(os.access(path, os.R_OK | os.W_OK) for path in strange)
        remedy = f"chown -hR {quote(owner.removeprefix('#'))} {quote(str(home))}"
        yield Finding("home", "failed" if closed else "warning", text, remedy)


def _check_room_for(home: Path) -> Finding:
    """Check that a missing home can be created."""
    above = next(folder for folder in home.absolute().parents if folder.exists())
    if above.is_dir() and os.access(above, os.W_OK | os.X_OK):
        return Finding("home", "ok", f"{home} will be created at the first start")
    text = f"{home} can't be created: {above} is not a writable folder"
    return Finding("home", "failed", text, "Set PLATFORM_HOME to a folder that can be created.")


def _of_others(home: Path) -> list[Path]:
    """Files in the home, and in its folders that commands write to, that the home's owner does not own."""
    owner, paths = home.stat().st_uid, []
    for folder in (home, home / "secrets", home / "backups"):
        if not os.access(folder, os.R_OK | os.X_OK):
            continue
        for path in sorted(folder.iterdir()):
            with suppress(FileNotFoundError):  # a running platform removed it
                paths += [path] if path.lstat().st_uid != owner else []
    return paths


def check_disk(disk: DiskSpace) -> Finding:
    """Check that the disk is writable and has more free space than the required reserve."""
    if not disk.can_be_written():
        return Finding("disk", "failed", "the disk can't be written", _REPAIR)
    shortage = disk.shortage()
    if shortage is not None:
        return Finding("disk", "failed", f"the disk is {shortage}; uploads are refused", _MAKE_ROOM)
    free = disk.free_bytes()
    if free < _FREE_BYTES:
        return Finding("disk", "warning", f"only {free >> 20} MB are free", _MAKE_ROOM)
    return Finding("disk", "ok", f"{free >> 30} GB are free")


def check_secrets(home: Path) -> Iterator[Finding]:
    """Check that nobody else can read secrets."""
    folder = home / "secrets"
    if not os.access(folder, os.R_OK | os.X_OK):
        return
    files = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    exposed = [path for path in [folder, *files] if _others_may(path)]
    for path in exposed:
        mode = "700" if path.is_dir() else "600"
        yield Finding("secrets", "failed", f"other users can read {path}", f"chmod {mode} {quote(str(path))}")
    if not exposed:
        yield Finding("secrets", "ok", f"{len(files)}, readable only by their owner")


def _others_may(path: Path) -> bool:
    return bool(path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def check_port(host: str, port: int) -> Finding:
    """Check that the port is free or a platform answers there. Blocks."""
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, host)
    where = f"{host}:{port}"
    try:
        with build_opener(ProxyHandler({})).open(f"http://{where}/health", timeout=5) as answer:
            return _health(where, answer.read())
    except HTTPError as error:
        with error:
            return _health(where, error.read())
    except (OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, gaierror):
            return Finding("port", "failed", f"there is no host '{host}'", "Correct PLATFORM_HOST.")
        if isinstance(reason, ConnectionRefusedError):
            return Finding("port", "ok", f"{where} is free: the platform is not running there")
        return _other_program(where)


def check_mail(host: str, port: int) -> Finding:
    """Check that something listens where the mail server should be. Blocks for five seconds per address."""
    where = f"{host}:{port}"
    try:
        with create_connection((host, port), timeout=5):
            return Finding("mail", "ok", f"{where} answers")
    except (OSError, UnicodeError) as error:
        text = (error.strerror or str(error)) if isinstance(error, OSError) else "not the name of a host"
        reason = text.lower()
        remedy = (
            "Start the mail server, or correct PLATFORM_SMTP_HOST and PLATFORM_SMTP_PORT. "
            "Until then, no e-mail is sent."
        )
        return Finding("mail", "warning", f"the mail server {where} can't be reached: {reason}", remedy)


def check_dev_ports(ports: Sequence[int]) -> Finding:
    """Check that the services' own ports on loopback are free."""
    ports_in_use = [str(port) for port in ports if _is_taken(port)]
    if not ports_in_use:
        return Finding("dev ports", "ok", f"{ports[0]} to {ports[-1]} are free")
    text = f"other programs are using {', '.join(ports_in_use)}"
    return Finding("dev ports", "failed", text, "Stop them, or unset PLATFORM_DEV_PORTS.")


def _is_taken(port: int) -> bool:
    try:
        bind("127.0.0.1", port).close()
    except OSError:
        return True
    return False


def _other_program(where: str) -> Finding:
    text = f"another program is using {where}"
    return Finding("port", "failed", text, "Stop it, or choose another PLATFORM_PORT.")


def _health(where: str, body: bytes) -> Finding:
    try:
        health = json.loads(body)
        checks = {name: text for name, text in health["checks"].items() if text.startswith("unhealthy")}
        summary = f"a platform answers at {where}: {health['status']}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return _other_program(where)
    if not checks:
        return Finding("port", "ok", summary, facts=_ANSWERS)
    listed = "; ".join(f"{name}: {text}" for name, text in checks.items())
    return Finding("port", "warning", f"{summary} ({listed})", f"http://{where}/health", facts=_ANSWERS)
