"""The engines, loaded once for all tests of this folder."""

from __future__ import annotations

import pytest

from builtin_plugins.embeddings.engines.minilm import MiniLm
from builtin_plugins.embeddings.engines.openvino import OpenVinoEngine
from builtin_plugins.embeddings.engines.sentence_transformers import SentenceTransformersEngine
from builtin_plugins.embeddings.weights import Weights, find_weights


@pytest.fixture(scope="session")
def weights() -> Weights:
    return find_weights()


@pytest.fixture(scope="session")
def reference_engine(weights: Weights) -> SentenceTransformersEngine:
    return SentenceTransformersEngine(weights)


@pytest.fixture(scope="session")
def openvino_engine(weights: Weights) -> OpenVinoEngine:
    return OpenVinoEngine(MiniLm(weights))
