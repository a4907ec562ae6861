"""The models that this plugin runs, and everything that distinguishes them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from builtin_plugins.embeddings.e5.file import find_file, locate_file
from builtin_plugins.embeddings.engines.base import EmbeddingEngine, EngineError, ModelNetwork, Vectors
from builtin_plugins.embeddings.settings import EmbeddingsSettings
from builtin_plugins.embeddings.weights import (
    FULL_INSTALL,
    MODEL,
    find_weights,
    is_packaged,
    locate_weights,
)
from builtin_plugins.inference import api as inference
from builtin_plugins.inference.api import Embedded


class Load(Protocol):
    """Creates a model's engine."""

    def __call__(self, settings: EmbeddingsSettings, home: Path | None = None) -> EmbeddingEngine:
        """Files derived from the weights are kept in `home`, for all processes."""


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model on this machine.

    `names` are those that clients may use, in lower case. `prefixes` precede a text for each purpose, as in
    training. `unrelated` is the cosine of two unrelated texts. `meaning` is the share of vectors in hybrid
    search for questions in `languages` (None for about all), and `elsewhere` that for others; both were
    chosen on the sets in `tests/benchmarks`. `load` creates the engine; `locate` raises WeightsNotFound if
    its files are missing, without reading them.
    """

    name: str
    names: frozenset[str]
    prefixes: Mapping[inference.Purpose, str]
    unrelated: float
    meaning: float
    load: Load
    locate: Callable[[EmbeddingsSettings], Path]
    languages: frozenset[str] | None = None
    elsewhere: float = 0.2

    def embedded(self, vectors: Vectors, engine: str) -> Embedded:
        """Vectors, with what a search has to know about the model."""
        return Embedded(vectors, engine, self.unrelated, self.meaning, self.languages, self.elsewhere)


def _load_minilm(settings: EmbeddingsSettings, home: Path | None = None) -> EmbeddingEngine:
    weights = find_weights(settings.weights)
    if settings.engine == "sentence-transformers":
        if importlib.util.find_spec("sentence_transformers") is None:
            raise EngineError(f"the engine sentence-transformers is not installed: {FULL_INSTALL}")
        from builtin_plugins.embeddings.engines.sentence_transformers import SentenceTransformersEngine

        return SentenceTransformersEngine(weights, precision=settings.for_torch)
    if importlib.util.find_spec("tokenizers") is None:
        raise EngineError(f"{MODEL} needs the package tokenizers, which is not installed: {FULL_INSTALL}")
    from builtin_plugins.embeddings.engines.minilm import MiniLm

    return _on_openvino(MiniLm(weights, home), settings)


def _load_e5(settings: EmbeddingsSettings, home: Path | None = None) -> EmbeddingEngine:
    if settings.engine == "sentence-transformers":
        raise EngineError("multilingual-e5-small runs on OpenVINO only: choose the engine auto or openvino")
    from builtin_plugins.embeddings.e5.network import E5

    return _on_openvino(E5(*find_file(settings.e5_file), home), settings)


def _on_openvino(network: ModelNetwork, settings: EmbeddingsSettings) -> EmbeddingEngine:
    from builtin_plugins.embeddings.engines.openvino import OpenVinoEngine

    return OpenVinoEngine(
        network, precision=settings.precision, threads=settings.threads, batches=settings.batches or 1
    )


MINILM = LocalModel(
    "all-minilm",
    frozenset(
        {"all-minilm", "all-minilm-l6-v2", "all-minilm:latest", "sentence-transformers/all-minilm-l6-v2"}
    ),
    {"passage": "", "query": ""},
    0.0,
    0.7,
    _load_minilm,
    lambda settings: locate_weights(settings.weights),
    languages=frozenset({"en"}),
    elsewhere=0.2,
)
E5_SMALL = LocalModel(
    "multilingual-e5-small",
    frozenset({"multilingual-e5-small", "multilingual-e5-small:latest", "intfloat/multilingual-e5-small"}),
    {"passage": "passage: ", "query": "query: "},
    0.75,
    0.7,
    _load_e5,
    lambda settings: locate_file(settings.e5_file),
    languages=frozenset({"en"}),  # it knows other languages, too, but words work better for those
    elsewhere=0.5,
)
MODELS = (E5_SMALL, MINILM)


def is_left_out(model: LocalModel, settings: EmbeddingsSettings) -> bool:
    """Whether this model is missing as part of a light installation; using it tells how to add it."""
    return model is MINILM and settings.weights is None and not is_packaged()


def find_model(name: str, models: Sequence[LocalModel] = MODELS) -> LocalModel | None:
    """The model that clients call `name`, regardless of case; None if it isn't one of this plugin's."""
    lower_name = name.lower()
    return next((model for model in models if lower_name in model.names), None)
