"""`platformctl graph draw`."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from typer.testing import CliRunner

from cli.main import app
from tests.cli.conftest import Cli

SVG = "{http://www.w3.org/2000/svg}"


def run(*args: str) -> str:
    result = CliRunner().invoke(app, ["graph", "draw", *args])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_samples() -> None:
    """The picture of the sample documents names what they are about, and is the same every time."""
    first = run("-o", "-")
    tree = ElementTree.fromstring(first)
    texts = {one.text for one in tree.iter(f"{SVG}text")}
    assert len(list(tree.iter(f"{SVG}circle"))) > 10 and any("Aurora" in str(text) for text in texts)
    assert first == run("-o", "-")


def test_own_texts(tmp_path: Path) -> None:
    """Files and folders of one's own; names are text, whatever they look like."""
    (tmp_path / "a.txt").write_text('Ada Lindqvist met "<script>alert(1)</script>" and Jonas Berg.', "utf-8")
    target = tmp_path / "a.svg"
    run(str(tmp_path), "-o", str(target), "--entities", "5")
    tree = ElementTree.parse(target)
    assert not list(tree.iter(f"{SVG}script"))
    assert "Ada Lindqvist" in {one.text for one in tree.iter(f"{SVG}text")}


def test_a_knowledge_base_that_is_not_there(cli: Cli) -> None:
    result = cli("graph", "draw", "--knowledge-base", "nope", "-o", "-")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "'nope'" in result.output


def test_nothing_to_draw(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["graph", "draw", str(tmp_path)])
    assert result.exit_code == 1
