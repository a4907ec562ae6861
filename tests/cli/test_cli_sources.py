"""`platformctl sources` against a running platform, and the plugin that it writes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kernel.testing import Start
from tests.cli.conftest import Cli
from tests.cli.test_cli_ingest import signed_in
from tests.fakes.hash_embeddings import HashEmbeddings


async def test_the_whole_way(cli: Cli, start_platform: Start, tmp_path: Path) -> None:
    """A folder is added, run, and deleted from; each document says where it comes from."""
    folder = tmp_path / "policies"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.txt").write_text(f"Rule {number} says {number * 7}.")
    env = {"PLATFORM_SOURCE_FOLDERS": str(tmp_path)}
    running = await start_platform("sources", "source_folder", "source_git", HashEmbeddings(), env=env)
    terminal = await signed_in(cli, running, tmp_path / "client")
    first = await terminal("ingest", str(folder / "0.txt"), "--kb", "Rules")
    assert first.exit_code == 0, first.output
    added = await terminal("sources", "add", "Rules", "--kind", "folder", "--set", f"path={folder}")
    assert added.exit_code == 0, added.output
    [source] = json.loads((await terminal("sources", "list", "Rules", "--json")).stdout)
    tested = await terminal("sources", "test", source["id"])
    assert (tested.exit_code, "0.txt" in tested.output) == (0, True)
    (folder / "1.txt").unlink()
    dry = json.loads((await terminal("sources", "run", source["id"], "--dry", "--json")).stdout)
    assert dry["plan"]["gone"] == ["1.txt"]
    ended = json.loads((await terminal("sources", "run", source["id"], "--json")).stdout)
    assert (ended["state"], ended["gone"], ended["found"]) == ("done", 1, 2)
    grouped = await terminal("sources", "map", source["id"], "root", "--group", "--to", "sign-in-group:hr")
    assert grouped.exit_code == 0, grouped.output
    unchanged = await terminal("sources", "map", source["id"], "root", "--to", "nobody")
    assert unchanged.exit_code == 0, unchanged.output
    documents = await running.platform.database.read(_document_ids)
    why = await terminal("sources", "why", documents["2.txt"], "--kb", "Rules", "--json")
    assert json.loads(why.stdout)["path"] == "2.txt"
    assert (await terminal("sources", "list", "Rules")).exit_code == 0
    wrong = ("sources", "add", "Rules", "--kind", "folder", "--set", "path=/etc")
    assert (await terminal(*wrong)).exit_code == 1
    assert len(json.loads((await terminal("sources", "list", "Rules", "--json")).stdout)) == 1
    assert (await terminal(*wrong, "--untried")).exit_code == 0  # the run says that it is not allowed
    (_, other) = json.loads((await terminal("sources", "list", "Rules", "--json")).stdout)
    assert (await terminal("sources", "test", other["id"])).exit_code != 0
    assert (await terminal("sources", "run", other["id"])).exit_code != 0
    digits = ("--set", "url=/nowhere", "--set", "branch=2024")  # a text, although it has only digits
    assert (await terminal("sources", "add", "Rules", "--kind", "git", *digits, "--untried")).exit_code == 0
    limits = ("--media-type", "text/*", "--max-size-mb", "2", "--max-age-days", "30", "--name", "Small")
    added = await terminal("sources", "add", "Rules", "--kind", "folder", "--set", f"path={folder}", *limits)
    assert added.exit_code == 0, added.output
    small = json.loads((await terminal("sources", "list", "Rules", "--json")).stdout)[-1]
    filters = {"media_types": ["text/*"], "max_size_mb": 2, "max_age_days": 30, "include": [], "exclude": []}
    assert (small["name"], small["filters"]) == ("Small", filters)


async def test_rights_at_a_source(cli: Cli, start_platform: Start, tmp_path: Path) -> None:
    """Who has no counterpart is listed, and gets one; a document says who reads it."""
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "open.txt").write_text("Rule 1 says 7.")
    for place in (folder / "open.txt", folder, *folder.parents):
        if place.stat().st_mode & 0o005 != 0o005:
            place.chmod(0o755)
    env = {"PLATFORM_SOURCE_FOLDERS": str(tmp_path)}
    running = await start_platform("sources", "source_folder", HashEmbeddings(), env=env)
    terminal = await signed_in(cli, running, tmp_path / "client")
    (folder.parent / "first.txt").write_text("First.")
    first = await terminal("ingest", str(folder.parent / "first.txt"), "--kb", "Rules")
    assert first.exit_code == 0, first.output
    guarded = ("--set", f"path={folder}", "--set", "rights=posix")
    added = await terminal("sources", "add", "Rules", "--kind", "folder", *guarded)
    assert added.exit_code == 0, added.output
    [source] = json.loads((await terminal("sources", "list", "Rules", "--json")).stdout)
    await running.run_jobs()
    shown = json.loads((await terminal("sources", "rights", source["id"], "--json")).stdout)
    assert "root" in {one["principal"] for one in shown["unmapped"]}
    mapped = await terminal("sources", "map", source["id"], "root", "--to", "nobody")
    assert mapped.exit_code == 0, mapped.output
    shown = json.loads((await terminal("sources", "rights", source["id"], "--json")).stdout)
    assert ("root", "person") not in {(one["principal"], one["kind"]) for one in shown["unmapped"]}
    documents = await running.platform.database.read(_document_ids)
    why = json.loads(
        (await terminal("sources", "why", documents["open.txt"], "--kb", "Rules", "--json")).stdout
    )
    assert why["readers"] == {"everybody": True, "source": "folder", "readers": []}
    wrong = await terminal("sources", "map", source["id"], "root", "--to", "somewhere")
    assert wrong.exit_code != 0


def _document_ids(session: object) -> dict[str, str]:
    from sqlalchemy import text
    from sqlalchemy.orm import Session

    assert isinstance(session, Session)
    rows = session.execute(text("SELECT filename, id FROM rag_document ORDER BY uploaded_at")).all()
    return {row.filename: row.id for row in rows}


@pytest.mark.parametrize("guarded", [(), ("--guarded",)])
def test_a_new_kind_passes_the_suite(cli: Cli, tmp_path: Path, guarded: tuple[str, ...]) -> None:
    made = cli("sources", "new", "acme-drive", "--into", str(tmp_path), *guarded)
    assert made.exit_code == 0, made.output
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:schemathesis", "-p", "no:cacheprovider"]
    ran = subprocess.run(command, cwd=tmp_path / "acme-drive", capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert " passed" in ran.stdout
