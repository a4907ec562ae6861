"""The engine of this process: loaded at the first text, run off the event loop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from builtin_plugins.embeddings.engines.base import EmbeddingEngine, EngineError
from builtin_plugins.embeddings.settings import EmbeddingsSettings
from builtin_plugins.embeddings.weights import WeightsError, find_weights
from kernel.sdk import Embedded, Unavailable

if TYPE_CHECKING:
    from prometheus_client import Histogram

log = logging.getLogger("platform.embeddings")

MODEL = "all-minilm"
NAMES = frozenset({MODEL, "all-minilm-l6-v2", "all-minilm:latest", "sentence-transformers/all-minilm-l6-v2"})


class LocalEmbeddings:
    """all-MiniLM-L6-v2 on this machine."""

    def __init__(self, settings: EmbeddingsSettings, durations: Histogram) -> None:
        self._settings = settings
        self._durations = durations
        self._loading = asyncio.Lock()
        self._engine: EmbeddingEngine | None = None
        # Two at a time: a question need not wait for the whole batch of an ingestion in the same process.
        self._threads = ThreadPoolExecutor(2, "platform-embed")

    async def embed(self, model: str, texts: Sequence[str]) -> Embedded | None:
        """Vectors of `texts`; None for a model of another name. Raises Unavailable without an engine."""
        if model.lower() not in NAMES:
            return None
        engine = await self._loaded()
        started = time.perf_counter()
        vectors = await asyncio.get_running_loop().run_in_executor(self._threads, engine.encode, list(texts))
        self._durations.labels(MODEL).observe(time.perf_counter() - started)
        return Embedded(vectors, engine.identity)

    async def _loaded(self) -> EmbeddingEngine:
        if self._engine is None:
            async with self._loading:
                if self._engine is None:
                    self._engine = await self._load()
        return self._engine

    async def _load(self) -> EmbeddingEngine:
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._threads, load_engine, self._settings
            )
        except (WeightsError, EngineError) as error:
            log.exception("the embedding engine can't be loaded")
            raise Unavailable(f"Embeddings are not available: {_first_sentence(error)}") from None

    def close(self) -> None:
        """Let go of the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def load_engine(settings: EmbeddingsSettings) -> EmbeddingEngine:
    """The engine that the settings ask for, verified against the reference vectors.

    Raises WeightsError when the model files are missing or damaged, EngineError when no engine runs here.
    """
    started = time.monotonic()
    weights = find_weights(settings.weights)
    if settings.engine == "sentence-transformers":
        from builtin_plugins.embeddings.engines.sentence_transformers import SentenceTransformersEngine

        precision = "fp32" if settings.precision == "auto" else settings.precision
        engine: EmbeddingEngine = SentenceTransformersEngine(weights, precision=precision)
    else:
        from builtin_plugins.embeddings.engines.openvino import OpenVinoEngine

        engine = OpenVinoEngine(weights, precision=settings.precision, threads=settings.threads)
    log.info("embedding engine %s ready after %.2f s", engine.identity, time.monotonic() - started)
    return engine


def _first_sentence(error: Exception) -> str:
    return (
        "the model files are missing or damaged" if isinstance(error, WeightsError) else "no engine runs here"
    )
