"""What the README tells is run as it stands."""

from __future__ import annotations

import asyncio
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.write_settings import settings_table, shown_table
from tests.fakes.processes import process_environment, served_platform

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"<!-- tested: (?P<what>[^>]+?) -->\n```\w+\n(?P<text>.*?)```", re.DOTALL)


def blocks(kind: str) -> dict[str, str]:
    """The README's tested blocks of one kind, by what follows it; several of one name are joined."""
    found: dict[str, str] = {}
    for match in BLOCK.finditer(README):
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
    assert output.startswith(quoted)
    assert "nordlys/aurora#7: Negative wind speed" in output
    assert "no longer waiting" in output


def _in_shell(script: str, home: Path, folder: Path) -> str:
    """Run the script where `./setup.sh` is the command line of this environment."""
    command = folder / "setup.sh"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m cli "$@"\n')
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    (folder / "cli").symlink_to(ROOT / "cli")
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
    """The plugin and its test, copied from the README, pass."""
    for name, text in blocks("plugin").items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-o", "asyncio_mode=auto", "-p", "no:cacheprovider"]
    env = process_environment({"PYTHONPATH": str(tmp_path)})
    result = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert "1 passed" in result.stdout


async def test_settings_table(tmp_path: Path) -> None:
    """The configuration table is the one that the settings classes make."""
    expected = await settings_table(tmp_path / "home")
    assert shown_table(README) == expected, "write it anew: python -m tests.cli.write_settings"


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_links_lead_somewhere(target: str) -> None:
    """Each file that the README links to exists."""
    assert (ROOT / target).exists()
