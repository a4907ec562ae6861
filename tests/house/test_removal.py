"""Any built-in plugin can be deleted, with its entry point: the rest starts, and the command line works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from kernel.plugins.loading import GROUP, installed
from kernel.version import DISTRIBUTION
from tests.fakes.processes import process_environment

ROOT = Path(__file__).parents[2]
PLUGINS = sorted(point.name for point in metadata.distribution(DISTRIBUTION).entry_points.select(group=GROUP))

_START = """
import asyncio, json
from cli.running import make_loader
from kernel.gateway.app import gateway_app
from kernel.boot import open_platform

async def start():
    async with open_platform(make_loader(), role="api") as platform:
        gateway_app(platform)
        print(json.dumps({record.name: [record.status, record.reason] for record in platform.plugins}))

asyncio.run(start())
"""


def without(name: str, folder: Path) -> dict[str, str]:
    """The environment of a process that finds everything but this plugin; made of links in `folder`."""
    for part in ("kernel", "cli", "schemas", "manifests"):
        (folder / part).symlink_to(ROOT / part)
    (folder / "builtin_plugins").mkdir()
    for path in (ROOT / "builtin_plugins").iterdir():
        if path.name not in (name, "__pycache__"):
            (folder / "builtin_plugins" / path.name).symlink_to(path)
    source = Path(str(metadata.distribution(DISTRIBUTION).locate_file("."))) / f"{_dist_info()}"
    target = folder / source.name
    shutil.copytree(source, target)
    points = (target / "entry_points.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in points if not line.startswith(f"{name} = ")]
    (target / "entry_points.txt").write_text("".join(kept), encoding="utf-8")
    return process_environment({"PYTHONPATH": str(folder), "PLATFORM_HOME": str(folder / "home")})


def _dist_info() -> str:
    files = metadata.distribution(DISTRIBUTION).files or ()
    return next(file.parts[0] for file in files if file.parts[0].endswith(".dist-info"))


def run(folder: Path, values: dict[str, str], *arguments: str) -> str:
    """The standard output of the interpreter with these arguments, in an environment of `without`."""
    command = [sys.executable, "-P", *arguments]
    result = subprocess.run(
        command, cwd=folder, env=values, capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def dependants(name: str) -> set[str]:
    """The plugins that require it, directly or by way of others."""
    requires = {candidate.name: set(candidate.load().requires) for candidate in installed()}
    gone = {name}
    while more := {plugin for plugin, needed in requires.items() if needed & gone} - gone:
        gone |= more
    return gone - {name}


@pytest.mark.long
@pytest.mark.parametrize("name", PLUGINS)
def test_the_rest_works(name: str, tmp_path: Path) -> None:
    """Plugins that require it are refused with a reason that names it; all others are loaded."""
    import json

    values = without(name, tmp_path)
    states = json.loads(run(tmp_path, values, "-c", _START).splitlines()[-1])
    assert name not in states
    out = {
        plugin: reason for plugin, (status, reason) in states.items() if status not in ("loaded", "disabled")
    }
    assert set(out) == dependants(name), out
    assert all(name in reason or set(out) & set(reason.split("'")) for reason in out.values())
    shown = run(tmp_path, values, "-m", "cli", "--help")
    assert "serve" in shown


def test_links_find_the_rest(tmp_path: Path) -> None:
    """What the tests above rely on: the plugin can't be imported, and its entry point is gone."""
    values = without("news", tmp_path)
    code = (
        "import importlib.util as u; from kernel.plugins.loading import installed; import kernel, os;"
        "print(u.find_spec('builtin_plugins.news'), 'news' in [c.name for c in installed()], kernel.__file__)"
    )
    shown = run(tmp_path, values, "-c", code).split()
    assert shown == ["None", "False", os.fspath(tmp_path / "kernel" / "__init__.py")]
