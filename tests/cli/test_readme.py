"""What README and docs tell is run as it stands; their generated parts and links are true."""

from __future__ import annotations

import asyncio
import importlib
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.write_reference import generated, shown
from tests.fakes.processes import process_environment, served_platform

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OTHERS = [
    *(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "builtin_plugins").glob("*/README.md")),
    *sorted((ROOT / "kernel").rglob("README.md")),
]
LONGEST_README, LONGEST_PARAGRAPH = 9000, 500
BLOCK = re.compile(r"<!-- tested: (?P<what>[^>]+?) -->\n```\w+\n(?P<text>.*?)```", re.DOTALL)


def blocks(kind: str) -> dict[str, str]:
    """The tested blocks of one kind, by what follows it; several of one name are joined.

    Those of the README come first, as the tutorials go on from there.
    """
    found: dict[str, str] = {}
    walked = [page for page in PAGES if page.parent.name == "tutorial"]
    text = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "README.md", *walked))
    for match in BLOCK.finditer(text):
        first, _, rest = match["what"].partition(" ")
        if first == kind:
            found[rest] = found.get(rest, "") + match["text"]
    return found


@pytest.mark.long
async def test_first_answer(tmp_path: Path) -> None:
    """The commands of the first five minutes, in one shell, end in the answer that the README shows.

    What waits for a document ends when the token has expired.
    """
    home = tmp_path / "home"
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "samples").symlink_to(ROOT / "manifests" / "samples")
    env = {"PLATFORM_MANIFESTS_DIR": str(tmp_path / "manifests")}
    async with served_platform(home, env=env) as served:
        script = blocks("answer")[""].replace("http://127.0.0.1:8000", served.url)
        (waiting,) = re.findall(r"^while .*?done$", script, re.MULTILINE | re.DOTALL)
        script += f'AUTH="Authorization: Bearer expired"\n{waiting}\necho "no longer waiting"\n'
        output = await asyncio.to_thread(_in_shell, script, home, tmp_path)
    quoted = " ".join(line[2:] for line in README.splitlines() if line.startswith("> "))
    assert quoted
    assert output[: len(quoted)] == quoted
    assert "nordlys/aurora#7" in output
    assert "no longer waiting" in output


def _in_shell(script: str, home: Path, folder: Path) -> str:
    """Run the script where `./setup.sh` is the command line of this environment."""
    command = folder / "setup.sh"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m cli "$@"\n')
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    (folder / "builtin_plugins").symlink_to(ROOT / "builtin_plugins")
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=process_environment({"PLATFORM_HOME": str(home)}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_plugin_of_the_quick_start(tmp_path: Path) -> None:
    for name, text in blocks("plugin").items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-o", "asyncio_mode=auto", "-p", "no:cacheprovider"]
    env = process_environment({"PYTHONPATH": str(tmp_path)})
    result = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert "1 passed" in result.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The generated parts of the reference, from the code."""
    return asyncio.run(generated(tmp_path_factory.mktemp("reference") / "home"))


@pytest.mark.parametrize("page", ["settings.md", "hooks.md"])
def test_generated_pages(made: dict[str, str], page: str) -> None:
    """Settings and hooks in docs/reference are those of the code."""
    assert shown(page) == made[page], "write them again: python -m tests.cli.write_reference"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", _without_code(page))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {str(page.relative_to(ROOT / "docs")) for page in PAGES[1:]} - {"README.md"}
    assert pages - set(re.findall(r"\]\(([^)#:]+)\)", index)) == set()


def test_readme_is_short() -> None:
    """What it is, how to install it, the first answer, and where to go on."""
    assert len(README) <= LONGEST_README


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: str(page.relative_to(ROOT)))
def test_paragraphs_are_short(page: Path) -> None:
    """No paragraph or item of a list is a wall of text; tables and what is generated are left out."""
    text = re.sub(r"<!-- generated:.*generated:end -->", "", _without_code(page), flags=re.DOTALL)
    items = re.split(r"\n\s*\n|\n(?=- |\d+\. |\|)", text)
    assert [item for item in items if len(item) > LONGEST_PARAGRAPH and not item.startswith("|")] == []


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: str(page.relative_to(ROOT)))
def test_what_examples_import_is_there(page: Path) -> None:
    """Of the platform's own modules; whole examples run in the test of the guide."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(
        r"^from ((?:kernel|builtin_plugins|cli)\b[\w.]*) import (\([^)]*\)|.+)", text, re.MULTILINE
    )
    for module, names in (match.groups() for match in found):
        there = vars(importlib.import_module(module))
        assert {name for name in re.findall(r"\w+", names) if name not in there} == set(), module


def _without_code(page: Path) -> str:
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
