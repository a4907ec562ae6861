"""The models that this plugin runs, and all that distinguishes them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from builtin_plugins.embeddings.e5.file import find_file, locate_file
from builtin_plugins.embeddings.engines.base import EmbeddingEngine, EngineError, Network, Vectors
from builtin_plugins.embeddings.settings import EmbeddingsSettings
from builtin_plugins.embeddings.weights import FULL_INSTALL, find_weights, is_packaged, locate_weights
from kernel.sdk import Embedded, contracts


class Load(Protocol):
    """Makes a model's engine."""

    def __call__(self, settings: EmbeddingsSettings, home: Path | None = None) -> EmbeddingEngine:
        """In `home`, files that are derived from the weights are kept for all processes."""


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model of this machine.

    `names` are those that clients may use, in lower case. `prefixes` precede a text of each purpose, as
    the model was trained. `unrelated` is the cosine of two texts with nothing in common;
    `meaning` is the share of vectors in hybrid search for questions in `languages` (None for about all),
    `elsewhere` that for others. They are chosen on the sets in `tests/benchmarks`.
    `load` makes its engine; `locate` raises WeightsNotFound where its files are not there, and reads none of
    them.
    """

    name: str
    names: frozenset[str]
    prefixes: Mapping[contracts.Purpose, str]
    unrelated: float
    meaning: float
    load: Load
    locate: Callable[[EmbeddingsSettings], Path]
    languages: frozenset[str] | None = None
    elsewhere: float = 0.2

    def embedded(self, vectors: Vectors, engine: str) -> Embedded:
        """Vectors with what a search has to know of the model."""
        return Embedded(vectors, engine, self.unrelated, self.meaning, self.languages, self.elsewhere)


def _load_minilm(settings: EmbeddingsSettings, home: Path | None = None) -> EmbeddingEngine:
    weights = find_weights(settings.weights)
    if settings.engine == "sentence-transformers":
        if importlib.util.find_spec("sentence_transformers") is None:
            raise EngineError(f"the engine sentence-transformers is not installed: {FULL_INSTALL}")
        from builtin_plugins.embeddings.engines.sentence_transformers import SentenceTransformersEngine

        return SentenceTransformersEngine(weights, precision=settings.for_torch)
    from builtin_plugins.embeddings.engines.minilm import MiniLm

    return _on_openvino(MiniLm(weights, home), settings)


def _load_e5(settings: EmbeddingsSettings, home: Path | None = None) -> EmbeddingEngine:
    if settings.engine == "sentence-transformers":
        raise EngineError("multilingual-e5-small runs on OpenVINO only: choose the engine auto or openvino")
    from builtin_plugins.embeddings.e5.network import E5

    return _on_openvino(E5(*find_file(settings.e5_file), home), settings)


def _on_openvino(network: Network, settings: EmbeddingsSettings) -> EmbeddingEngine:
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
    languages=frozenset({"en"}),  # it knows the others as well, but words work better there
    elsewhere=0.5,
)
MODELS = (E5_SMALL, MINILM)


def is_left_out(model: LocalModel, settings: EmbeddingsSettings) -> bool:
    """Whether a light installation goes without this model. Asking for it says how to add it."""
    return model is MINILM and settings.weights is None and not is_packaged()


def find_model(name: str, models: Sequence[LocalModel] = MODELS) -> LocalModel | None:
    """The model that a client calls `name`, in any case; None for one of somebody else."""
    wanted = name.lower()
    return next((model for model in models if wanted in model.names), None)
