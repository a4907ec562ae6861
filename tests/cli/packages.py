"""Packages by somebody else, made on the spot: as a folder for `sys.path`, or as a wheel."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

GOOD = """
from kernel.sdk import Plugin

class ThePlugin(Plugin):
    name = "{name}"
    version = "{version}"
    description = "Made for a test"
"""


@dataclass(frozen=True)
class Package:
    """A distribution with one module and, when it has a `plugin`, one entry point."""

    name: str
    version: str = "1.0"
    body: str = GOOD
    requires: Sequence[str] = ()
    plugin: bool = True
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def module(self) -> str:
        return self.name.replace("-", "_")

    def files(self) -> Mapping[str, str]:
        info = f"{self.module}-{self.version}.dist-info"
        lines = [f"Metadata-Version: 2.1\nName: {self.name}\nVersion: {self.version}"]
        lines += [f"Requires-Dist: {item}" for item in self.requires]
        wheel = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        body = self.body.replace("{name}", self.module).replace("{version}", self.version)
        found = {
            f"{self.module}.py": body,
            f"{info}/METADATA": "\n".join(lines) + "\n",
            f"{info}/WHEEL": wheel,
        }
        if self.plugin:
            entry = f"{self.module} = {self.module}:ThePlugin"
            found[f"{info}/entry_points.txt"] = f"[platform.plugins]\n{entry}\n"
        found.update(self.more)
        record = "".join(f"{path},,\n" for path in [*found, f"{info}/RECORD"])
        return {**found, f"{info}/RECORD": record}

    def unpack(self, folder: Path) -> Path:
        for path, content in self.files().items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(content)
        return folder

    def wheel(self, folder: Path) -> Path:
        target = folder / f"{self.module}-{self.version}-py3-none-any.whl"
        with zipfile.ZipFile(target, "w") as archive:
            for path, content in self.files().items():
                archive.writestr(path, content)
        return target
