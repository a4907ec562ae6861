"""`platformctl support-bundle`: all that a bug report needs, in one file without secrets."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.texts import App, examples

if TYPE_CHECKING:
    from collections.abc import Iterable

app = App()

_LOG_BYTES = 2 * 1024 * 1024
_SHORTEST_SECRET = 6
_HIDDEN = "***"


@app.command(
    epilog=examples(
        ("platformctl support-bundle", "platform-support-DATE-TIME.tar.gz in this folder"),
        after="It holds versions, settings without secrets, the results of 'status' and 'doctor', plugins, "
        "failed jobs and the end of PLATFORM_LOG_FILE: no documents, questions or accounts. Values of "
        "secrets are replaced wherever they appear. Look through it before you send it.",
    )
)
def support_bundle(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="File to write; it must not exist yet.")
    ] = None,
) -> None:
    """Pack versions, settings, checks, failed jobs and log lines for a bug report, without secrets."""
    from cli import console, running
    from cli.failures import Refused

    target = file or Path(f"platform-support-{datetime.now(UTC):%Y%m%d-%H%M%S}.tar.gz")
    if target.exists():
        raise Refused(f"{target} already exists", "Name another file.")
    parts = running.run(_parts())
    secrets = _secrets()
    _write(target, {name: _cleaned(content, secrets) for name, content in parts.items()})
    console.done(f"{target}: {', '.join(sorted(parts))}")
    console.note("Look through it before you send it.")


async def _parts() -> dict[str, str]:
    """The files of the bundle, by name."""
    from dataclasses import asdict

    from cli import checks, configuration, glance, running
    from kernel.plugins.loading import read_report

    findings = [asdict(finding) async for finding in checks.examine()]
    settings = running.kernel_settings()
    async with running.explained_platform() as platform:
        values = [
            {"variable": item.variables[0], "value": item.value, "source": item.source}
            for item in configuration.collect(platform)
        ]
        plugins = [
            {"name": one.name, "version": one.version, "status": one.status, "reason": one.reason}
            for one in platform.plugins
        ]
    parts: dict[str, Any] = {
        "machine.json": _machine(),
        "packages.json": _packages(),
        "settings.json": values,
        "plugins.json": {"loaded": plugins, "last_start": read_report(settings.home)},
        "doctor.json": findings,
        "status.json": await glance.take(),
    }
    texts = {name: _as_json(value) for name, value in parts.items()}
    if settings.log_file is not None and settings.log_file.is_file():
        texts["log.txt"] = _end_of(settings.log_file)
    return texts


def _machine() -> dict[str, Any]:
    import os
    import platform
    import sys

    from kernel import __version__

    return {
        "platform": __version__,
        "python": sys.version,
        "system": platform.platform(),
        "processor": platform.machine(),
        "processors": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "time": datetime.now(UTC).isoformat(),
    }


def _packages() -> dict[str, str]:
    from importlib import metadata

    return dict(sorted((str(one.metadata["Name"]), one.version) for one in metadata.distributions()))


def _as_json(value: Any) -> str:
    import json

    return json.dumps(value, indent=1, ensure_ascii=False, default=str)


def _end_of(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _LOG_BYTES))
        return file.read().decode(errors="replace")


def _secrets() -> list[str]:
    """Values that must not be in the bundle: those of secret settings and of secrets in the home."""
    from cli import running
    from cli.instance import variables
    from kernel.auth.secrets import SecretStore

    store = SecretStore(running.kernel_settings().home)
    secrets = [value for name in store.names() if (value := store.get(name))]
    secrets += [line for value in secrets for line in value.splitlines()]
    secrets += variables(_is_secret).values()
    secrets += running.run(_secret_settings())
    return sorted({value for value in secrets if len(value) >= _SHORTEST_SECRET}, key=len, reverse=True)


def _is_secret(variable: str) -> bool:
    return any(word in variable.upper() for word in ("SECRET", "PASSWORD", "PASSPHRASE", "TOKEN", "_KEY"))


async def _secret_settings() -> list[str]:
    from pydantic import SecretStr

    from cli import running
    from cli.configuration import every_value

    async with running.explained_platform() as platform:
        values = every_value(platform)
        return [value.get_secret_value() for value in values if isinstance(value, SecretStr)]


def _cleaned(text: str, secrets: Iterable[str]) -> str:
    """The text without these values and without anything that looks like a secret."""
    import json

    from kernel.observe.logs import mask

    for value in secrets:
        for form in (value, json.dumps(value)[1:-1]):
            text = text.replace(form, _HIDDEN)
    return "\n".join(mask(line) for line in text.split("\n"))


def _write(target: Path, parts: dict[str, str]) -> None:
    import io
    import os
    import tarfile
    import time

    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, text in sorted(parts.items()):
            content = text.encode()
            member = tarfile.TarInfo(f"platform-support/{name}")
            member.size, member.mode, member.mtime = len(content), 0o600, int(time.time())
            archive.addfile(member, io.BytesIO(content))
