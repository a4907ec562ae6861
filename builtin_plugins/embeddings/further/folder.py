"""A folder in sentence-transformers' format as a local model."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builtin_plugins.embeddings.catalog import LocalModel
from builtin_plugins.embeddings.engines.base import DeclaredWrongly, EmbeddingEngine, EngineError
from builtin_plugins.embeddings.further.declarations import FurtherModel, check_dimension, digest
from builtin_plugins.embeddings.settings import EmbeddingsSettings
from builtin_plugins.embeddings.weights import FULL_INSTALL, WeightsDamaged, WeightsNotFound
from builtin_plugins.inference import api as inference

MODULES, PROMPTS = "modules.json", "config_sentence_transformers.json"
_DECIDING = frozenset({".safetensors", ".json", ".txt", ".model"})
_PASSAGE_PROMPTS = ("passage", "document")


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """What an engine needs of the files: see `engines.sentence_transformers.ModelFiles`."""

    folder: Path
    model: str
    fingerprint: str


def folder_model(name: str, declared: FurtherModel) -> LocalModel:
    """The local model of a folder. Its files, except the prompts, are only read when the engine is loaded."""
    folder = Path(declared.folder or "")
    return LocalModel(
        name,
        frozenset({name}),
        _prefixes(folder, declared),
        declared.unrelated,
        declared.meaning,
        lambda settings, _home=None: _load(name, declared, settings),
        lambda _settings: _located(folder),
        declared.languages,
        declared.elsewhere,
    )


def _prefixes(folder: Path, declared: FurtherModel) -> Mapping[inference.Purpose, str]:
    prompts = _prompts(folder)
    passage, query = declared.passage_prefix, declared.query_prefix
    if passage is None:
        passage = next((prompts[key] for key in _PASSAGE_PROMPTS if prompts.get(key)), "")
    return {"passage": passage, "query": prompts.get("query") or "" if query is None else query}


def _prompts(folder: Path) -> Mapping[str, str]:
    """The prompts in the model's own configuration; none if they can't be read."""
    try:
        prompts = json.loads((folder / PROMPTS).read_text(encoding="utf-8")).get("prompts")
    except (OSError, ValueError, AttributeError):
        return {}
    pairs = prompts.items() if isinstance(prompts, dict) else ()
    return {str(key): value for key, value in pairs if isinstance(value, str)}


def _located(folder: Path) -> Path:
    if not (folder / MODULES).is_file():
        raise WeightsNotFound(
            f"{folder} has no {MODULES}: name a folder in sentence-transformers' format, as its "
            "`save_pretrained` writes it"
        )
    if not any(folder.rglob("*.safetensors")):
        raise WeightsNotFound(f"{folder} has no weights in safetensors: save the model with them")
    return folder


def _load(name: str, declared: FurtherModel, settings: EmbeddingsSettings) -> EmbeddingEngine:
    folder = _located(Path(declared.folder or ""))
    if importlib.util.find_spec("sentence_transformers") is None:
        raise EngineError(f"a folder needs sentence-transformers, which is not installed: {FULL_INSTALL}")
    from builtin_plugins.embeddings.engines.sentence_transformers import SentenceTransformersEngine

    prefix = _prefixes(folder, declared)["passage"]
    files = ModelFolder(folder, name, digest(_content(folder), prefix, declared.max_tokens))
    try:
        engine = SentenceTransformersEngine(
            files, precision=settings.for_torch, max_tokens=declared.max_tokens
        )
        check_dimension(name, declared.dimension, engine.encode(["probe"]))
    except DeclaredWrongly:
        raise
    except Exception as error:  # boundary: a library that reads third-party files
        raise WeightsDamaged(f"{folder} can't be loaded as a sentence-transformers model: {error}") from error
    return engine


def _content(folder: Path) -> str:
    """The digest of all files that determine the vectors, with their names."""
    whole = hashlib.sha256()
    for path in _deciding(folder):
        with path.open("rb") as stream:
            whole.update(f"{path.relative_to(folder)}\n".encode())
            whole.update(hashlib.file_digest(stream, "sha256").digest())
    return whole.hexdigest()


def _deciding(folder: Path) -> Iterator[Any]:
    return iter(sorted(path for path in folder.rglob("*") if path.suffix in _DECIDING and path.is_file()))
