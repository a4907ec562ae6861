"""The guide for plugin authors is followed as it stands, and a new plugin is one to be proud of."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.fakes.processes import process_environment

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "tutorial" / "first-plugin.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"<!-- tested: guide -->\n```bash\n(.*?)```", re.DOTALL)
PAGES = sorted((ROOT / "docs" / "how-to" / "plugins").glob("*.md"))
PAGE_BLOCK = re.compile(
    r"<!-- tested: (?:plugin|file (?P<path>\S+)) -->\n```python\n(?P<text>.*?)```", re.DOTALL
)
HOOK = re.compile(r"    @hookimpl\n    def (?P<name>\w+)\(self\) -> .*:\n        return \[(?P<items>.*)\]\n")


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The interpreter of an environment that sees the platform and takes packages for itself."""
    folder = tmp_path / "env"
    venv.create(folder, with_pip=False)
    site = next((folder / "lib").glob("python*/site-packages"))
    lines = [str(ROOT), *(path for path in sys.path if path.endswith("site-packages"))]
    (site / "platform.pth").write_text("\n".join(lines) + "\n")
    return folder / "bin" / "python"


def run(python: Path, folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """A script in a shell of that environment, without any index."""
    command = python.with_name("platformctl")
    command.write_text(f'#!/bin/sh\nexec {python} -P -m cli "$@"\n')
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    values = {
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "PLATFORM_HOME": str(folder / "home"),
        "PLATFORM_TEST_POSTGRES": "postgresql://nobody@127.0.0.1:1/none",
        "PLATFORM_TEST_REQUIRE_SERVICES": "",
        "PIP_NO_INDEX": "1",
        "PIP_CONFIG_FILE": "/dev/null",
    }
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=process_environment(values),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


@pytest.mark.long
def test_the_guide_leads_to_an_installed_plugin(python: Path, tmp_path: Path) -> None:
    """Its commands, one after the other: the new plugin passes its tests, is installed, and is in service."""
    script = "".join(BLOCK.findall(GUIDE)).replace("plugins install", "plugins install --offline")
    result = run(python, tmp_path, script)
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"\b4 passed, 4 skipped", result.stdout), result.stdout
    assert "acme_notes 0.1.0  loaded" in result.stdout


@pytest.mark.long
def test_the_pages_on_services_work_together(python: Path, tmp_path: Path) -> None:
    """Every example is added to one new plugin as its page says; its tests pass, and it is tidy."""
    assert run(python, tmp_path, "platformctl plugins new acme-notes").returncode == 0
    package, additions = tmp_path / "acme-notes", []
    for page in PAGES:
        for block in PAGE_BLOCK.finditer(page.read_text(encoding="utf-8")):
            if block["path"]:
                (package / block["path"]).write_text(block["text"], encoding="utf-8")
            else:
                additions.append(block["text"])
    plugin = package / "acme_notes" / "plugin.py"
    plugin.write_text(with_additions(plugin.read_text(encoding="utf-8"), additions), encoding="utf-8")
    result = run(python, package, "python -m pytest -q " + " ".join(added_tests(package)))
    assert result.returncode == 0, result.stdout + result.stderr
    assert "7 passed" in result.stdout
    tidy = lint(package, "check", "--ignore=E402,F811,I001,RUF022")
    assert tidy.returncode == 0, tidy.stdout
    assert lint(package, "format", "--check", "--exclude=plugin.py").returncode == 0


def added_tests(package: Path) -> list[str]:
    """The test files of the pages, without the one that every new plugin has."""
    return [
        str(path.relative_to(package))
        for path in sorted((package / "tests").glob("test_*.py"))
        if path.name != "test_plugin.py"
    ]


def with_additions(plugin: str, additions: list[str]) -> str:
    """`plugin.py` with what the pages add: imports, and hooks, of which several pages may extend one."""
    hooks: dict[str, str] = {}
    for text in [plugin, *additions]:
        for hook in HOOK.finditer(text):
            before = hooks.get(hook["name"], hook[0])
            listed = HOOK.fullmatch(before)
            assert listed
            items = dict.fromkeys(f"{listed['items']}, {hook['items']}".split(", "))
            hooks[hook["name"]] = before.replace(f"[{listed['items']}]", f"[{', '.join(items)}]")
    imports = [line for text in additions for line in text.splitlines() if line.startswith("from ")]
    head, _, rest = HOOK.sub("", plugin).partition("log = ")
    return f"{head}{chr(10).join(imports)}\n\nlog = {rest}\n{chr(10).join(hooks.values())}"


def lint(package: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Ruff over a plugin's package, with the platform's own rules."""
    as_strangers = ["known-third-party = ['kernel']", "known-first-party = ['acme_notes']"]
    sorting = [part for line in as_strangers for part in ("--config", f"lint.isort.{line}")]
    sorting = sorting if arguments[0] == "check" else []
    command = ["ruff", *arguments, "--no-cache", "--config", str(ROOT / "pyproject.toml"), *sorting, "."]
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=package, capture_output=True, text=True, check=False
    )


def test_a_new_plugin_passes_our_own_checks(cli: Cli, tmp_path: Path) -> None:
    """Lint and format as the platform's own code has them."""
    assert cli("plugins", "new", "acme-notes").exit_code == 0
    for arguments in (["check"], ["format", "--check"]):
        result = lint(tmp_path / "acme-notes", *arguments)
        assert result.returncode == 0, result.stdout


def test_the_next_command_is_for_the_platforms_environment(cli: Cli, tmp_path: Path) -> None:
    """It works in any shell: the interpreter and the folder stand in it in full."""
    result = cli("plugins", "new", "acme-notes")
    printed = " ".join((result.stdout + result.stderr).split())
    assert f"cd {tmp_path / 'acme-notes'} && {sys.executable} -m pytest" in printed


@pytest.mark.parametrize("name", ["Acme", "9lives", "a b", "-x", "a--b", "class", "x" * 51, "ä"])
def test_a_name_that_can_be_no_package_is_refused(cli: Cli, tmp_path: Path, name: str) -> None:
    assert cli("plugins", "new", "--", name).exit_code == 2
    assert not list(tmp_path.glob("*/pyproject.toml"))


@pytest.mark.parametrize("name", ["rag", "json", "kernel"])
def test_a_name_that_is_taken_is_refused(cli: Cli, name: str) -> None:
    """By another plugin, by a module of Python, by the platform itself."""
    result = cli("plugins", "new", name)
    assert result.exit_code == 4 and "already" in result.stderr


def test_a_folder_that_exists_is_left_alone(cli: Cli, tmp_path: Path) -> None:
    """The second time is refused, whatever is in the folder by then."""
    again = ("plugins", "new", "acme-notes")
    assert cli(*again).exit_code == 0
    (tmp_path / "acme-notes" / "README.md").write_text("mine")
    assert cli(*again).exit_code == 4
    assert (tmp_path / "acme-notes" / "README.md").read_text() == "mine"
