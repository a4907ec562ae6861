"""The wheel: three packages with their data inside, and a command line that works where it is installed."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from tests.fakes.processes import process_environment

ROOT = Path(__file__).resolve().parents[2]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
OFFLINE = ("--no-index", "--no-deps", "--quiet")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [*PIP, "wheel", *OFFLINE, "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, and this one's libraries in its sight."""
    folder = tmp_path_factory.mktemp("installed") / "env"
    venv.create(folder, with_pip=False)
    site = next((folder / "lib").glob("python*/site-packages"))
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    (site / "libraries.pth").write_text("\n".join(libraries) + "\n")
    command = [*PIP, "--python", str(folder), "install", *OFFLINE, str(wheel)]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    return folder


def platformctl(environment: Path, folder: Path, *arguments: str) -> str:
    """What the installed command prints, called from an empty folder."""
    result = subprocess.run(
        [environment / "bin" / "platformctl", *arguments],
        cwd=folder,
        env=process_environment({"PLATFORM_HOME": str(folder / "home")}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_three_packages_and_nothing_else(names: list[str]) -> None:
    top = {name.partition("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == {"kernel", "builtin_plugins", "cli"}


@pytest.mark.parametrize("folder", ["schemas", "manifests"])
def test_shared_data_travels(names: list[str], folder: str) -> None:
    """Schemas and sample manifests are inside, each but the API's document, which an installation writes."""
    inside = {name.removeprefix(f"kernel/_data/{folder}/") for name in names if f"_data/{folder}/" in name}
    files = [path for path in (ROOT / folder).rglob("*") if path.is_file() and path.name != "openapi.json"]
    assert inside == {str(path.relative_to(ROOT / folder)) for path in files}


def test_files_beside_the_code_travel(names: list[str]) -> None:
    """Whatever the packages read at run time is inside: pages' assets, templates, samples, migrations."""
    tracked = subprocess.run(
        ["git", "ls-files", "kernel", "builtin_plugins", "cli"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert len(tracked) > 100
    assert [name for name in tracked if name not in names and (ROOT / name).is_file()] == []


def test_no_tests_and_no_leftovers(names: list[str]) -> None:
    unwanted = ("tests/", "__pycache__", ".platform/", ".pyc")
    assert [name for name in names if any(part in name for part in unwanted)] == []


def test_license_travels(wheel: Path, names: list[str]) -> None:
    """The license is named in the metadata, and its text is there."""
    with zipfile.ZipFile(wheel) as archive:
        found = next(name for name in names if name.endswith(".dist-info/METADATA"))
        head = archive.read(found).decode().partition("\n\n")[0]
    assert "License-Expression: Apache-2.0" in head
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_metadata_for_an_index(wheel: Path, names: list[str]) -> None:
    """The index can show for which Pythons it is, and where its documents and sources are."""
    with zipfile.ZipFile(wheel) as archive:
        found = next(name for name in names if name.endswith(".dist-info/METADATA"))
        head = Parser().parsestr(archive.read(found).decode())
    classifiers = head.get_all("Classifier", [])
    versions = {line.rpartition(" ")[2] for line in classifiers if "Python :: 3." in line}
    assert versions == {"3.11", "3.12", "3.13", "3.14"}
    addresses = {line.partition(",")[0] for line in head.get_all("Project-URL", [])}
    assert {"Homepage", "Documentation", "Changelog", "Source", "Issues"} <= addresses
    assert {"rag", "graph", "speech", "postgres", "all", "testing"} <= set(head.get_all("Provides-Extra", []))


@pytest.mark.long
def test_installed_command_runs(environment: Path, tmp_path: Path) -> None:
    """`platformctl` of the wheel is its own, not the checkout's."""
    code = "import kernel, cli; print(kernel.__file__, cli.__file__)"
    python = environment / "bin" / "python"
    where = subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert where.stdout.count(str(environment)) == 2
    assert platformctl(environment, tmp_path, "--version").startswith("platformctl ")


@pytest.mark.long
def test_installed_platform_finds_its_parts(environment: Path, tmp_path: Path) -> None:
    """All built-in plugins load from the wheel, and the API description is made from it."""
    plugins = json.loads(platformctl(environment, tmp_path, "plugins", "list", "--json"))
    ours = {item["name"]: item["status"] for item in plugins if item["distribution"] == "platform-kernel"}
    assert {name for name, status in ours.items() if status != "loaded"} == {"news"}, ours  # off by default
    assert {"rag", "embeddings", "manifest_webhooks"} <= set(ours)
    assert "/v1/rag/pipeline" in json.loads(platformctl(environment, tmp_path, "openapi"))["paths"]
    assert platformctl(environment, tmp_path, "db", "upgrade") == ""
