"""Checks the fragments of the changelog, or makes a release's section of them.

python .ci/changes.py            check every file in changes/
python .ci/changes.py VERSION    move them into CHANGELOG.md, under a heading with this version and today
"""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KINDS = {"security": "Security", "removed": "Removed or different", "added": "Added", "fixed": "Fixed"}
NAME = re.compile(rf"[a-z0-9][a-z0-9-]{{0,40}}\.({'|'.join(KINDS)})\.md")
LONGEST = 400


def fragments(folder: Path) -> list[Path]:
    """The fragments, without the file that explains them."""
    return sorted(path for path in folder.iterdir() if path.name != "README.md")


def problems(folder: Path) -> list[str]:
    """What is wrong with them, one line each."""
    found = []
    for path in fragments(folder):
        text = path.read_text(encoding="utf-8").strip()
        if not NAME.fullmatch(path.name):
            found.append(f"{path.name}: call it NAME.KIND.md; kinds are {', '.join(KINDS)}")
        elif not text.endswith("."):
            found.append(f"{path.name}: write one or two whole sentences")
        elif len(text) > LONGEST or "\n\n" in text or text[0] in "-*#":
            found.append(f"{path.name}: write one paragraph of at most {LONGEST} characters, without a list")
    return found


def section(folder: Path, version: str) -> str:
    """The fragments as a release's part of the changelog."""
    parts = [f"## {version}, {datetime.now(UTC).date().isoformat()}\n"]
    for kind, title in KINDS.items():
        texts = [path.read_text(encoding="utf-8") for path in fragments(folder) if f".{kind}." in path.name]
        if texts:
            lines = "".join(f"- {' '.join(text.split())}\n" for text in texts)
            parts.append(f"### {title}\n\n{lines}")
    return "\n".join(parts)


def release(root: Path, version: str) -> None:
    """Move the fragments to the top of the changelog."""
    changelog = root / "CHANGELOG.md"
    before, heading, after = changelog.read_text(encoding="utf-8").partition("\n## ")
    text = f"{before}\n{section(root / 'changes', version)}{heading}{after}"
    changelog.write_text(text, encoding="utf-8")
    for path in fragments(root / "changes"):
        path.unlink()


def main(root: Path, *arguments: str) -> int:
    if found := problems(root / "changes"):
        sys.stderr.write("".join(f"{line}\n" for line in found))
        return 1
    for version in arguments[:1]:
        release(root, version)
    return 0


if __name__ == "__main__":
    sys.exit(main(ROOT, *sys.argv[1:]))
