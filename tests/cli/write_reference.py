"""Writes the generated pages of docs/reference again: `python -m tests.cli.write_reference`."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from cli.configuration import as_markdown, collect
from cli.hooks import collect as collect_hooks
from cli.hooks import described_as_markdown
from kernel.boot import declared_platform
from kernel.settings.loading import SettingsLoader
from kernel.version import DISTRIBUTION

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
BEGIN, END = "<!-- generated:begin -->\n", "\n<!-- generated:end -->"


async def generated(home: Path) -> dict[str, str]:
    """What stands between the marks of each page, of the kernel and the built-in plugins."""
    async with declared_platform(SettingsLoader({"PLATFORM_HOME": str(home)})) as platform:
        ours = {r.name for r in platform.plugins if r.distribution == DISTRIBUTION} | {"kernel", "cli"}
        return {
            "settings.md": as_markdown([item for item in collect(platform) if item.owner in ours]),
            "hooks.md": described_as_markdown(h for h in collect_hooks(platform) if h.brought_by in ours),
        }


def shown(page: str) -> str:
    text = (REFERENCE / page).read_text(encoding="utf-8")
    return text.partition(BEGIN)[2].partition(END)[0]


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        pages = asyncio.run(generated(Path(home)))
    for page, content in pages.items():
        text = (REFERENCE / page).read_text(encoding="utf-8")
        head, rest = text.partition(BEGIN)[0], text.partition(END)[2]
        (REFERENCE / page).write_text(head + BEGIN + content + END + rest, encoding="utf-8")


if __name__ == "__main__":
    main()
