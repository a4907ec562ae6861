"""The model's files: found without running the package's code, refused unless they are the published ones."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import pytest

from builtin_plugins.embeddings import weights as module
from builtin_plugins.embeddings.weights import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    WEIGHTS_SHA256,
    Weights,
    WeightsDamaged,
    WeightsError,
    WeightsNotFound,
    download_weights,
    find_weights,
)


@pytest.fixture
def copy(weights: Weights, tmp_path: Path) -> Path:
    """A folder of links to the published files, free to be damaged."""
    for file in weights.folder.rglob("*"):
        if file.is_file():
            link = tmp_path / file.relative_to(weights.folder)
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(file)
    return tmp_path


def test_the_installed_package_holds_the_published_files(weights: Weights) -> None:
    assert weights.tensors.is_file()
    assert WEIGHTS_SHA256.startswith(weights.fingerprint)


def test_a_folder_of_the_operator_is_taken_instead(copy: Path) -> None:
    assert find_weights(copy).folder == copy


@pytest.mark.parametrize("name", [WEIGHTS_FILE, CONFIG_FILE, "tokenizer.json"])
def test_a_file_that_differs_is_refused(copy: Path, name: str) -> None:
    content = bytearray((copy / name).read_bytes())
    content[-2] ^= 1
    (copy / name).unlink()
    (copy / name).write_bytes(content)
    with pytest.raises(WeightsDamaged, match=re.escape(name)):
        find_weights(copy)


@pytest.mark.parametrize("name", [WEIGHTS_FILE, "vocab.txt", "1_Pooling/config.json"])
def test_a_folder_that_lacks_a_file_is_refused(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with pytest.raises(WeightsNotFound, match=f"has no {name}"):
        find_weights(copy)


def test_without_package_and_folder_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_installed(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(module.metadata, "distribution", not_installed)
    with pytest.raises(WeightsNotFound, match="PLATFORM_EMBEDDINGS_WEIGHTS"):
        find_weights()


def test_a_download_never_replaces_a_folder(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="exists"):
        download_weights(tmp_path)
