"""Writes the configuration table of the README again: `python -m tests.cli.write_settings`."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from cli.configuration import as_markdown, collect
from kernel.boot import declared_platform
from kernel.settings import SettingsLoader
from kernel.version import DISTRIBUTION

README = Path(__file__).resolve().parents[2] / "README.md"
BEGIN, END = "<!-- settings:begin -->\n", "\n<!-- settings:end -->"


async def settings_table(home: Path) -> str:
    """The settings of the kernel, the command line and the built-in plugins."""
    async with declared_platform(SettingsLoader({"PLATFORM_HOME": str(home)})) as platform:
        ours = {r.name for r in platform.plugins if r.distribution == DISTRIBUTION} | {"kernel", "cli"}
        return as_markdown([item for item in collect(platform) if item.owner in ours])


def shown_table(readme: str) -> str:
    """What stands between the marks."""
    return readme.partition(BEGIN)[2].partition(END)[0]


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        table = asyncio.run(settings_table(Path(home)))
    text = README.read_text(encoding="utf-8")
    head, rest = text.partition(BEGIN)[0], text.partition(END)[2]
    README.write_text(head + BEGIN + table + END + rest, encoding="utf-8")


if __name__ == "__main__":
    main()
