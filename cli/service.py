"""`platformctl service`: run the platform as a systemd service."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from cli.texts import App, examples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kernel.settings.loading import KernelSettings, Settings

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
_ACCOUNT = "platform"

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
def show(user: User = _ACCOUNT) -> None:
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
    user: Annotated[
        str | None,
        typer.Option(
            help="System account that runs it; it must own PLATFORM_HOME. Without it: platform, which is "
            "made if it is missing."
        ),
    ] = None,
    create_user: Annotated[
        bool, typer.Option("--create-user", help="Make the account without asking if it is missing.")
    ] = False,
    folder: Annotated[Path, typer.Option(help="Folder of the units.")] = _FOLDER,
    force: Annotated[bool, typer.Option("--force", help="Replace units that were changed.")] = False,
) -> None:
    """Write units for systemd. Nothing is started."""
    from cli import console, running
    from cli.failures import Refused

    is_chosen, user = user is not None, user or _ACCOUNT
    units = _units(user)
    for name, text in units.items():
        target = folder / name
        if target.exists() and target.read_text(encoding="utf-8") != text and not force:
            raise Refused(f"{target} exists and differs", "Replace it with --force.")
    if create_user or not is_chosen:
        _make_account(user, running.kernel_settings().home.absolute(), ask=not create_user)
    for name, text in units.items():
        (folder / name).write_text(text, encoding="utf-8")
        console.done(str(folder / name))
    _tell_of_home(running.kernel_settings().home.absolute(), user)
    console.note("Start it now and at boot: systemctl daemon-reload && systemctl enable --now platform")


def _make_account(user: str, home: Path, *, ask: bool) -> None:
    """Make the system account if it is missing, after a question. Raises Refused if it can't be made."""
    import pwd
    import subprocess
    import sys

    from cli import console
    from cli.failures import Refused

    with suppress(KeyError):
        pwd.getpwnam(user)
        return
    command = ["useradd", "--system", "--user-group", "--home-dir", str(home), "--no-create-home"]
    command += ["--shell", "/usr/sbin/nologin", user]
    by_hand = f"Name another with --user, let --create-user make it, or run {' '.join(map(quote, command))}"
    if ask and not (sys.stdin.isatty() and typer.confirm(f"There is no account '{user}'. Make it?")):
        raise Refused(f"there is no account '{user}'; nothing was written", by_hand)
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Refused(f"the account '{user}' could not be made: {error}", by_hand) from error
    console.done(f"account {user}")


def _units(user: str) -> dict[str, str]:
    from cli import running
    from kernel.process.serve import this_command

    settings = running.kernel_settings()
    home = settings.home.absolute()
    variables = {"PLATFORM_HOME": str(home)}
    folders = _folders(settings)
    for named, variable in _named_folders(home):
        folders.append(named)
        if variable is not None:  # as for the operator who installs it, such as setup.sh
            variables[variable] = str(named)
    common = {
        "user": user,
        "home": _literal(str(home)),
        "variables": "\n".join(
            f'Environment="{name}={_quotable(value)}"' for name, value in variables.items()
        ),
        "writable": " ".join(f'"-{_quotable(str(folder))}"' for folder in dict.fromkeys(folders)),
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


def _named_folders(home: Path) -> Iterator[tuple[Path, str | None]]:
    """Folders that plugins write to because a setting says so, each with its variable if it is set by one.

    Opening a platform for them would create secrets in its home, owned by whoever installs the units and
    unreadable for the service.
    """
    from cli import running
    from kernel.settings.checks import WrittenFolder

    loader = running.make_loader()
    for name, settings in _settings_of_plugins():
        sources, variables = loader.sources(name, settings), settings.env_names()
        for field, info in settings.model_fields.items():
            if field in sources and any(isinstance(mark, WrittenFolder) for mark in info.metadata):
                value = str(getattr(loader.load(name, settings), field))
                if value and "://" not in value:
                    by_variable = sources[field] == "environment"
                    folder = Path(value).absolute() if by_variable else home / value
                    yield folder, variables[field][0] if by_variable else None


def _settings_of_plugins() -> Iterator[tuple[str, type[Settings]]]:
    """The settings classes of the installed plugins that can be imported."""
    from kernel.plugins.loading import installed

    for candidate in installed():
        try:
            declare = getattr(candidate.load(), "register_settings", None)
        except Exception:  # noqa: BLE001 - boundary: `doctor` says what is wrong with it
            continue
        settings = declare() if declare is not None else None
        if settings is not None:
            yield candidate.name, settings


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


def _folders(settings: KernelSettings) -> list[Path]:
    """The folders that the kernel writes to."""
    from kernel.stores.disk import folders_written

    folders = folders_written(settings.home.absolute(), settings.sqlalchemy_url)
    folders += [settings.log_file.absolute().parent] if settings.log_file is not None else []
    return list(dict.fromkeys(folders))


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
