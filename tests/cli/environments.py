"""An environment of its own, into which the tests install packages."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fakes.processes import process_environment, run_python, without_plugins

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Environment:
    """An environment in which the platform is visible and what is installed stays."""

    folder: Path
    home: Path
    built_in: Sequence[str] = ()

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def site(self) -> Path:
        return next((self.folder / "lib").glob("python*/site-packages"))

    def plugins(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`platformctl plugins …` there, without any index, and with these built-in plugins alone."""
        values = {"PLATFORM_HOME": str(self.home), "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null"}
        values |= without_plugins(*self.built_in)
        command = ("-P", "-m", "cli", "plugins", *arguments)
        return run_python(*command, env=process_environment(values), python=str(self.python), seconds=120)

    def installed(self) -> set[str]:
        return {path.name.partition("-")[0] for path in self.site.glob("*.dist-info")}


def make_environment(folder: Path) -> Path:
    """A virtual environment that sees this one's packages and takes new ones for itself."""
    venv.create(folder, with_pip=False)
    site = next((folder / "lib").glob("python*/site-packages"))
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    (site / "platform.pth").write_text("\n".join([str(ROOT), *libraries, ""]))
    return folder
