"""`platformctl service`: units that systemd accepts, and that run this installation."""

from __future__ import annotations

import getpass
import shutil
import subprocess
from pathlib import Path

import pytest

from kernel.testing import missing
from tests.cli.conftest import Cli

NAMES = ("platform.service", "platform-worker@.service")


def test_install_writes_units(cli: Cli, tmp_path: Path, platform_home: Path) -> None:
    """They name the home and the command; units that somebody changed are kept unless --force is given."""
    arguments = ("service", "install", "--user", "somebody", "--folder", str(tmp_path))
    env = {"PLATFORM_BACKUP_TO": "/mnt/backups", "PLATFORM_LOG_FILE": "/var/log/platform/log"}
    assert cli(*arguments, env=env).exit_code == 0
    written = f'ReadWritePaths="-{platform_home}" "-/var/log/platform" "-/mnt/backups"'
    assert written in (tmp_path / NAMES[0]).read_text()
    assert cli(*arguments, "--force").exit_code == 0
    texts = [(tmp_path / name).read_text() for name in NAMES]
    for text in texts:
        assert f'Environment="PLATFORM_HOME={platform_home}"' in text and "User=somebody" in text
    assert "-m cli serve" in texts[0] and "-m cli worker" in texts[1]
    assert cli(*arguments).exit_code == 0
    (tmp_path / NAMES[0]).write_text(texts[0] + "# mine\n")
    assert cli(*arguments).exit_code == 4
    assert cli(*arguments, "--force").exit_code == 0
    assert (tmp_path / NAMES[0]).read_text() == texts[0]
    assert texts[0] in cli("service", "show", "--user", "somebody").stdout


def test_the_folder_of_manifests(cli: Cli, tmp_path: Path, platform_home: Path) -> None:
    """The service watches the folder that this installation watches, and can restore a backup into it.

    setup.sh names its own; without it, the service's would be another one, and its webhooks gone.
    """
    arguments = ("service", "show", "--user", "somebody")
    assert "PLATFORM_MANIFESTS_DIR" not in cli(*arguments).stdout
    said = cli(*arguments, env={"PLATFORM_MANIFESTS_DIR": f"{tmp_path}/100 % hooks"}).stdout
    assert said.count(f'Environment="PLATFORM_MANIFESTS_DIR={tmp_path}/100 %% hooks"') == 2
    assert f'ReadWritePaths="-{platform_home}" "-{tmp_path}/100 %% hooks"' in said


def test_a_home_that_is_not_there(bare_cli: Cli, tmp_path: Path) -> None:
    """Nothing is created in it, as that would belong to whoever installs the units."""
    home = tmp_path / "home of the service"
    arguments = ("service", "install", "--user", "somebody", "--folder", str(tmp_path))
    result = bare_cli(*arguments, env={"PLATFORM_HOME": str(home)})
    assert (result.exit_code, home.exists()) == (0, False), result.output
    assert f"install -d -m 700 -o somebody '{home}'" in " ".join(result.output.split())
    home.mkdir()
    result = bare_cli(*arguments, env={"PLATFORM_HOME": str(home)})
    assert f"chown -R somebody '{home}'" in " ".join(result.output.split()) and list(home.iterdir()) == []


def test_an_account_that_is_missing(cli: Cli, tmp_path: Path) -> None:
    """Without --user, nothing is written for an account that does not exist: it is made, or to be named."""
    tool = tmp_path / "bin" / "useradd"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/made\n')
    tool.chmod(0o755)
    arguments = ("service", "install", "--folder", str(tmp_path))
    env = {"PATH": f"{tool.parent}:/usr/bin:/bin"}
    assert cli(*arguments, env=env).exit_code == 4
    assert not (tmp_path / NAMES[0]).exists()
    assert cli(*arguments, "--create-user", env=env).exit_code == 0
    assert "User=platform" in (tmp_path / NAMES[0]).read_text()
    assert (tmp_path / "made").read_text().split()[-1] == "platform"


@pytest.mark.parametrize("name", ["a-home", "a home of 100 % $HOME"])
def test_systemd_accepts_them(cli: Cli, tmp_path: Path, name: str) -> None:
    if shutil.which("systemd-analyze") is None:
        missing("systemd-analyze is not installed")
    home = tmp_path / name
    home.mkdir()
    folder = str(tmp_path)
    done = cli(
        *("service", "install", "--user", getpass.getuser(), "--folder", folder),
        env={"PLATFORM_HOME": str(home)},
    )
    assert done.exit_code == 0, done.output
    units = [str(tmp_path / "platform.service"), str(tmp_path / "platform-worker@2.service")]
    shutil.copy(tmp_path / NAMES[1], units[1])
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=False
    )
    assert [line for line in checked.stderr.splitlines() if folder in line or "platform" in line] == []
