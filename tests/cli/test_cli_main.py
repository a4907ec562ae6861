"""The command line as a whole: help, errors, exit codes, commands of plugins, what it imports."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.group import entries_of_plugins
from cli.main import ENTRIES
from tests.cli.conftest import Cli
from tests.cli.packages import Package
from tests.fakes.processes import platformctl, process_environment

NAMES = [name for name, _ in (*ENTRIES, *entries_of_plugins())]

COMMANDS = """
import typer
from kernel.sdk import Account, Conflict, Plugin, hookimpl
from sqlalchemy import select

app = typer.Typer(help="Bark at somebody.")

@app.command()
def bark(whom: str) -> None:
    print("woof,", whom)

async def count(platform):
    return await platform.database.read(lambda session: len(session.scalars(select(Account)).all()))

@app.command("count")
def show(ctx: typer.Context) -> None:
    print(ctx.obj(count), "accounts")

@app.command()
def bite(ctx: typer.Context) -> None:
    async def refuse(platform):
        raise Conflict("the dog is asleep")
    ctx.obj(refuse)

class ThePlugin(Plugin):
    name = "{name}"
    version = "{version}"

    @hookimpl
    def register_commands(self):
        return [("dog", app), ("users", app)]
"""


def test_help_names_every_command(cli: Cli) -> None:
    result = cli("--help")
    assert result.exit_code == 0
    assert [name for name in NAMES if f" {name} " not in result.stdout] == []
    assert re.search(r"Exit codes: 0 .+, 1 .+, 2 .+, 3 .+, 4 ", result.stdout)


@pytest.mark.parametrize("name", NAMES)
def test_each_command_teaches(cli: Cli, name: str) -> None:
    result = cli(name, "--help")
    assert result.exit_code == 0, result.output
    assert "Examples" in result.stdout
    assert f"platformctl {name}" in result.stdout


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    """Help answers at once: neither the platform nor its libraries are imported for it."""
    command = [sys.executable, "-X", "importtime", "-P", "-m", "cli", "--help"]
    values = process_environment({"PLATFORM_HOME": str(tmp_path / "home")})
    result = subprocess.run(command, env=values, capture_output=True, text=True, timeout=60, check=True)
    heavy = {"sqlalchemy", "aiohttp", "pydantic", "kernel.platform", "kernel.sdk", "numpy", "alembic"}
    imported = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert imported & heavy == set()
    assert not (tmp_path / "home").exists()


def test_version(cli: Cli) -> None:
    from kernel import __version__

    assert cli("--version").stdout == f"platformctl {__version__}\n"


def test_a_command_ends_without_collecting_garbage() -> None:
    """What is frozen by then is left out of the last collection, which took a fifth of a command's time."""
    told = "import atexit, gc; atexit.register(lambda: print(len(gc.get_objects())))"
    code = f"{told}; from cli.main import main; import sys; sys.argv = ['platformctl', '--version']; main()"
    command = [sys.executable, "-P", "-c", code]
    shown = subprocess.run(command, env=process_environment({}), capture_output=True, text=True, check=True)
    assert int(shown.stdout.split()[-1]) < 1000


def test_stream_that_lacks_characters(tmp_path: Path) -> None:
    """Where the locale's encoding lacks a character, such as '…' or '✗', a question mark stands for it."""
    wrong, env = tmp_path / "wrong.yaml", {"PYTHONIOENCODING": "ascii"}
    wrong.write_text("kind: Plugin\n")
    assert "[ARGS]" in platformctl("--help", env=env, fresh=True).stdout
    assert platformctl("manifests", "validate", str(wrong), env=env, fresh=True).stdout.startswith("? ")


def test_unknown_command(cli: Cli) -> None:
    """A misspelt command is wrong usage and gets a suggestion."""
    result = cli("user")
    assert (result.exit_code, "'users'" in result.stderr) == (2, True)


def test_expected_error_has_no_traceback(cli: Cli) -> None:
    """A wrong setting is named in one line; the exit code says failed."""
    result = cli("secret", "list", env={"PLATFORM_PORT": "many"})
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ") and "PLATFORM_PORT" in result.stderr
    assert "Traceback" not in result.output


def test_debug_adds_the_traceback(cli: Cli) -> None:
    result = cli("manifests", "validate", "nowhere.yaml", env={"PLATFORM_DEBUG": "1"})
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert "error: nowhere.yaml: " in result.stderr


def test_a_manifest_that_is_valid_but_odd(cli: Cli, tmp_path: Path) -> None:
    """What is probably a mistake is a warning with a remedy; the manifest stays valid."""
    sample = (Path(__file__).parents[2] / "manifests/samples/crm-form.yaml").read_text()
    odd = tmp_path / "odd.yaml"
    odd.write_text(sample.replace("{{ .data.fields.message }}", "{{ message }}"))
    result = cli("manifests", "validate", str(odd))
    assert result.exit_code == 0 and result.stdout.startswith("! ")
    assert "{{ .message }}" in result.stdout
    result = cli("manifests", "validate", "--json", str(odd))
    [warning] = json.loads(result.stdout)[str(odd)]
    assert (result.exit_code, warning["severity"]) == (0, "warning")
    assert "{{ .message }}" in warning["remedy"]


@pytest.mark.parametrize("name", ["issues.txt", ".issues.yaml", "issues.YAML"])
def test_a_manifest_whose_name_nobody_looks_for(cli: Cli, tmp_path: Path, name: str) -> None:
    """In the manifests' folder it would silently do nothing."""
    sample = Path(__file__).parents[2] / "manifests/samples/github-issues.yaml"
    (tmp_path / name).write_text(sample.read_text())
    result = cli("manifests", "validate", str(tmp_path / name))
    assert result.exit_code == 0 and result.stdout.startswith("! ")
    assert f"'{name}'" in result.stdout


def test_commands_of_a_plugin(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin's group is found by its name, is listed, and can't take a built-in command's place."""
    monkeypatch.syspath_prepend(Package("acme-dog", body=COMMANDS).unpack(tmp_path / "packages"))
    assert cli("dog", "bark", "ada").stdout == "woof, ada\n"
    assert cli("users", "list").exit_code == 0
    listed = cli("plugins", "commands").stdout
    assert re.search(r"dog +Bark at somebody", listed)
    assert re.search(r"users +.*hidden", listed)


def test_a_command_of_a_plugin_reaches_the_platform(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads the database as built-in commands do; its errors are shown as theirs."""
    monkeypatch.syspath_prepend(Package("acme-dog", body=COMMANDS).unpack(tmp_path / "packages"))
    assert cli("users", "create", "ada", "--password-stdin", input="a long password").exit_code == 0
    counted = cli("dog", "count")
    assert (counted.stdout, counted.exit_code) == ("1 accounts\n", 0), counted.output
    refused = cli("dog", "bite")
    assert (refused.exit_code, refused.stderr.strip()) == (1, "error: the dog is asleep")


def test_intruder_is_named(tmp_path: Path) -> None:
    """Another distribution's `kernel` is named with its place before anything else happens."""
    root = Path(__file__).resolve().parents[2]
    shutil.copytree(root / "cli", tmp_path / "ours" / "cli", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "theirs" / "kernel").mkdir(parents=True)
    (tmp_path / "theirs" / "kernel" / "__init__.py").write_text("class Kernel: ...\n")
    modules = f"{tmp_path / 'ours'}:{tmp_path / 'theirs'}"
    result = platformctl(
        "--version", env={"PLATFORM_HOME": str(tmp_path / "home"), "PYTHONPATH": modules}, fresh=True
    )
    assert (result.returncode, "Traceback" in result.stderr) == (1, False)
    assert "'kernel'" in result.stderr and str(tmp_path / "theirs") in result.stderr


def test_folder_called_cli_is_not_ours(tmp_path: Path) -> None:
    """A package `cli` in the working directory is not taken for the platform's when it starts itself."""
    from kernel.process.serve import this_command

    (tmp_path / "cli").mkdir()
    (tmp_path / "cli" / "__main__.py").write_text("print('intruder')")
    values = process_environment({"PLATFORM_HOME": str(tmp_path / "home")})
    result = subprocess.run(
        this_command("--version"), cwd=tmp_path, env=values, capture_output=True, text=True, check=True
    )
    assert result.stdout.startswith("platformctl ")


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_no_color(tmp_path: Path, no_color: str, coloured: bool) -> None:
    """On a terminal statuses have colours, unless NO_COLOR is set."""
    reader, terminal = pty.openpty()
    values = {"PLATFORM_HOME": str(tmp_path), "TERM": "xterm-256color", "NO_COLOR": no_color}
    command = [sys.executable, "-P", "-m", "cli", "plugins", "list"]
    environment = process_environment({name: value for name, value in values.items() if value})
    with os.fdopen(reader, "rb", 0) as screen:
        process = subprocess.Popen(command, env=environment, stdout=terminal, stderr=terminal)
        os.close(terminal)
        shown = _read_all(screen)
        assert process.wait(30) == 0
    assert bool(re.search(rb"\x1b\[3\d", shown)) is coloured


def _read_all(screen: object) -> bytes:
    found = b""
    while True:
        try:
            piece = screen.read(4096)  # type: ignore[attr-defined]
        except OSError:  # Linux ends a terminal without writers with EIO.
            return found
        if not piece:
            return found
        found += piece


def test_completion_script(tmp_path: Path) -> None:
    """The shell's completion asks the program, which answers with commands."""
    asked = {"COMP_WORDS": "platformctl plug", "COMP_CWORD": "1", "_PLATFORMCTL_COMPLETE": "complete_bash"}
    result = platformctl(env={"PLATFORM_HOME": str(tmp_path), **asked})
    assert result.stdout.split() == ["plugins"]


@pytest.mark.parametrize(
    "arguments", ["backup list", "settings", "hooks", "plugins list", "doctor", "secret list", "status"]
)
def test_looking_leaves_nothing(bare_cli: Cli, platform_home: Path, arguments: str) -> None:
    """Commands that only read create no home and no secrets."""
    result = bare_cli(*arguments.split())
    assert not isinstance(result.exception, (OSError, AssertionError)), result.output
    assert not platform_home.exists()


@pytest.mark.parametrize("arguments", ["backup list", "settings", "doctor", "status"])
def test_looking_into_an_empty_home(bare_cli: Cli, platform_home: Path, arguments: str) -> None:
    platform_home.mkdir(mode=0o700)
    bare_cli(*arguments.split())
    assert list(platform_home.iterdir()) == []
