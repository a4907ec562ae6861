"""The changelog: fragments that a release collects, and a page for the first release."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def changes() -> ModuleType:
    spec = importlib.util.spec_from_file_location("changes", ROOT / ".ci" / "changes.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_fragments_are_sound(changes: ModuleType) -> None:
    """Those of this checkout have a kind, and are short."""
    assert changes.problems(ROOT / "changes") == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("slow.md", "Faster."),
        ("slow.better.md", "Faster."),
        ("slow.fixed.md", "Faster"),
        ("a.fixed.md", "- A."),
    ],
)
def test_faulty_fragments(changes: ModuleType, tmp_path: Path, name: str, text: str) -> None:
    """A name without a kind, an unknown kind, half a sentence, a list: each is named."""
    (tmp_path / name).write_text(text)
    (found,) = changes.problems(tmp_path)
    assert found.startswith(f"{name}: ")


def test_a_release(changes: ModuleType, tmp_path: Path) -> None:
    """The fragments become the newest section, sorted by kind, and are gone."""
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes" / "README.md").write_text("How.")
    (tmp_path / "changes" / "a.fixed.md").write_text("Uploads\nfinish again.\n")
    (tmp_path / "changes" / "b.security.md").write_text("A hole is closed.\n")
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\nWhat changed.\n\n## 0.1.0, 2026-11-29\n\nThe first.\n"
    )
    assert changes.main(tmp_path, "0.2.0") == 0
    text = (tmp_path / "CHANGELOG.md").read_text()
    ours, heading, before = text.partition("\n## 0.1.0, 2026-11-29\n")
    assert "### Security\n\n- A hole is closed.\n\n### Fixed\n\n- Uploads finish again.\n" in ours
    assert (
        ours.startswith("# Changelog\n\nWhat changed.\n\n## 0.2.0, ") and "The first." in before and heading
    )
    assert [path.name for path in (tmp_path / "changes").iterdir()] == ["README.md"]


def test_the_page_fits_a_page() -> None:
    """CHANGELOG.md has a section for this version, and a release's section is a page."""
    from kernel import __version__

    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = text.split("\n## ")[1:]
    assert sections[0].startswith(f"{__version__}, ")
    assert max(map(len, sections)) <= 5_000
