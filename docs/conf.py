"""How `./setup.sh docs` builds the site: the pages of this folder, and those beside the code.

Every page stays where it is, so that its links work in the repository, too. A link that leads nowhere fails
the build.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]
PARTS = {
    "Tutorial": "docs/tutorial",
    "How-to": "docs/how-to",
    "Plugins": "docs/how-to/plugins",
    "Reference": "docs/reference",
    "Explanation": "docs/explanation",
}

project = "Platform"
extensions = ["myst_parser"]
root_doc = "docs/README"
include_patterns = [
    "docs/**.md",
    "*.md",
    *(f"{folder}/**README.md" for folder in ("builtin_plugins", "kernel", "manifests", "changes")),
]
suppress_warnings = ["toc.not_included"]  # pages that others link to, and that stand in no table of contents
html_theme = "furo"
html_title = "Platform"
html_show_copyright = False
myst_heading_anchors = 4


def pages(folder: str) -> list[str]:
    return [str(page.relative_to(ROOT).with_suffix("")) for page in sorted((ROOT / folder).glob("*.md"))]


def add_contents(app: Sphinx, name: str, text: list[str]) -> None:
    """Fill the sidebar: Sphinx takes it from hidden tables of contents in the first page."""
    if name != root_doc:
        return
    parts = {title: pages(folder) for title, folder in PARTS.items()}
    parts["Explanation"].insert(0, "ARCHITECTURE")
    parts["Plugins that come along"] = sorted(
        str(page.relative_to(ROOT).with_suffix("")) for page in ROOT.glob("builtin_plugins/*/README.md")
    )
    parts["Project"] = ["README", "CONTRIBUTING", "SECURITY", "CHANGELOG"]
    for title, names in parts.items():
        lines = "\n".join(f"/{one}" for one in names)
        text[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{lines}\n```\n"


def setup(app: Sphinx) -> None:
    app.connect("source-read", add_contents)
