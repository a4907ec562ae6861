"""`platformctl service`: run the platform as a systemd service."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from cli.texts import App, examples

if TYPE_CHECKING:
    from kernel.settings import KernelSettings

app = App(
    no_args_is_help=True,
    help="Run the platform as a systemd service, which starts it at boot and restarts it after a failure.",
    epilog=examples(
        ("platformctl service install --user platform", "write the units"),
        ("platformctl service show", "print them only"),
        after="Settings that differ from their defaults belong in config.yaml in PLATFORM_HOME, or as "
        "VARIABLE=value lines in /etc/platform/environment.",
    ),
)

_FOLDER = Path("/etc/systemd/system")
_ENVIRONMENT = "/etc/platform/environment"
_STOP_MARGIN = 15

User = Annotated[str, typer.Option(help="System account that runs it; it must own PLATFORM_HOME.")]

_UNIT = """\
[Unit]
Description={description}
Wants=network-online.target
After=network-online.target postgresql.service redis-server.service

[Service]
Type=exec
User={user}
{variables}
EnvironmentFile=-{environment}
WorkingDirectory={home}
ExecStart={command}
Restart=on-failure
RestartSec=2
TimeoutStopSec={stop_seconds}
KillMode=mixed
UMask=0077

NoNewPrivileges=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectSystem=strict
ProtectHome=read-only
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectControlGroups=yes
RestrictSUIDSGID=yes
RestrictRealtime=yes
LockPersonality=yes
ReadWritePaths={writable}

[Install]
WantedBy=multi-user.target
"""


@app.command(epilog=examples(("platformctl service show --user platform", "on standard output")))
def show(user: User = "platform") -> None:
    """Print the units that 'service install' writes."""
    for name, text in _units(user).items():
        typer.echo(f"# {name}\n{text}")


@app.command(
    epilog=examples(
        ("platformctl service install --user platform", "for this installation and PLATFORM_HOME"),
        after="platform.service runs the API and a worker. platform-worker@.service runs further workers: "
        "systemctl start platform-worker@2. Run other commands as the same account: sudo -E -u platform …",
    )
)
def install(
    user: User = "platform",
    folder: Annotated[Path, typer.Option(help="Folder of the units.")] = _FOLDER,
    force: Annotated[bool, typer.Option("--force", help="Replace units that were changed.")] = False,
) -> None:
    """Write units for systemd. Nothing is started."""
    from cli import console, running
    from cli.failures import Refused

    units = _units(user)
    for name, text in units.items():
        target = folder / name
        if target.exists() and target.read_text(encoding="utf-8") != text and not force:
            raise Refused(f"{target} exists and differs", "Replace it with --force.")
    for name, text in units.items():
        (folder / name).write_text(text, encoding="utf-8")
        console.done(str(folder / name))
    _tell_of_home(running.kernel_settings().home.absolute(), user)
    console.note("Start it now and at boot: systemctl daemon-reload && systemctl enable --now platform")


def _units(user: str) -> dict[str, str]:
    from kernel.serve import this_command

    settings, backups = _settings()
    home = settings.home.absolute()
    variables = {"PLATFORM_HOME": str(home)}
    folders = _folders(settings, backups)
    manifests, is_variable = _manifests(home)
    if manifests is not None:
        folders.append(manifests)
    if is_variable:  # setup.sh sets it, and the service is to watch the same folder
        variables["PLATFORM_MANIFESTS_DIR"] = str(manifests)
    common = {
        "user": user,
        "home": _literal(str(home)),
        "variables": "\n".join(
            f'Environment="{name}={_quotable(value)}"' for name, value in variables.items()
        ),
        "writable": " ".join(f'"-{_quotable(str(folder))}"' for folder in folders),
        "environment": _ENVIRONMENT,
        "stop_seconds": int(settings.shutdown_timeout) + _STOP_MARGIN,
    }

    def unit(description: str, *arguments: str) -> str:
        command = " ".join(map(_word, this_command(*arguments)))
        return _UNIT.format(description=description, command=command, **common)

    return {
        "platform.service": unit("Platform: API and worker", "serve"),
        "platform-worker@.service": unit("Platform: worker %i", "worker"),
    }


def _settings() -> tuple[KernelSettings, str]:
    """The kernel's settings and the backup folder. Opening a platform for them would create secrets in its
    home, owned by whoever installs the units and unreadable for the service.
    """
    from builtin_plugins.platform_ops.settings import OpsSettings
    from cli import running

    return running.kernel_settings(), running.make_loader().load("platform_ops", OpsSettings).backup_to


def _manifests(home: Path) -> tuple[Path | None, bool]:
    """The folder of manifests if a setting names one, and whether an environment variable does."""
    from builtin_plugins.manifest_webhooks.settings import WebhookSettings
    from cli import running

    loader = running.make_loader()
    found = loader.load("manifest_webhooks", WebhookSettings).manifests_dir
    source = loader.sources("manifest_webhooks", WebhookSettings).get("manifests_dir", "default")
    if source == "default":
        return None, False
    return (found.absolute(), True) if source == "environment" else (home / found, False)


def _tell_of_home(home: Path, user: str) -> None:
    """Print what is left to do so that the service can use its home."""
    from cli import console

    words = f"{quote(user)} {quote(str(home))}"
    if not home.exists():
        console.warn(f"{home} does not exist yet. Create it first: install -d -m 700 -o {words}")
        return
    with suppress(KeyError):  # an owner without a name, from another machine
        if home.owner() != user:
            console.warn(f"{home} belongs to {home.owner()}, not to {user}: chown -R {words}")


def _folders(settings: KernelSettings, backups: str) -> list[Path]:
    """Every folder that the platform writes to; all others are read-only."""
    from kernel.stores.disk import folders_written

    found = folders_written(settings.home.absolute(), settings.sqlalchemy_url)
    found += [Path(backups).absolute()] if backups and "://" not in backups else []
    found += [settings.log_file.absolute().parent] if settings.log_file is not None else []
    return list(dict.fromkeys(found))


def _literal(text: str) -> str:
    """Escaped for systemd as the rest of a line: % must not begin a specifier."""
    return text.replace("%", "%%")


def _quotable(text: str) -> str:
    """The same for use in double quotes."""
    return _literal(text).replace("\\", "\\\\").replace('"', '\\"')


def _word(text: str) -> str:
    """A word of a command line, in which $ must not begin a variable either."""
    quotable = _quotable(text).replace("$", "$$")
    return f'"{quotable}"' if any(c in text for c in " \t\"'\\") else quotable
