"""The engine of this process: loaded at the first text, run off the event loop."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from builtin_plugins.embeddings.engines.base import EmbeddingEngine, EngineError
from builtin_plugins.embeddings.settings import EmbeddingsSettings
from builtin_plugins.embeddings.weights import WeightsError, find_weights, locate_weights
from kernel.sdk import Embedded, Unavailable

if TYPE_CHECKING:
    from prometheus_client import Histogram

log = logging.getLogger("platform.embeddings")

MODEL = "all-minilm"
_HALVES = re.compile(r"[\ud800-\udfff]")  # of characters, which the tokenizer refuses
NAMES = frozenset({MODEL, "all-minilm-l6-v2", "all-minilm:latest", "sentence-transformers/all-minilm-l6-v2"})


class LocalEmbeddings:
    """all-MiniLM-L6-v2 on this machine."""

    def __init__(self, settings: EmbeddingsSettings, durations: Histogram) -> None:
        self._settings = settings
        self._durations = durations
        self._loading = asyncio.Lock()
        self._engine: EmbeddingEngine | None = None
        self._problem: str | None = None
        # Two at a time: a question need not wait for the whole batch of an ingestion in the same process.
        self._threads = ThreadPoolExecutor(2, "platform-embed")

    async def embed(self, model: str, texts: Sequence[str]) -> Embedded | None:
        """Vectors of `texts`; None for a model of another name. Raises Unavailable without an engine."""
        if model.lower() not in NAMES:
            return None
        engine = await self._loaded()
        started = time.perf_counter()
        whole = [_HALVES.sub("\ufffd", text) for text in texts]
        vectors = await asyncio.get_running_loop().run_in_executor(self._threads, engine.encode, whole)
        self._durations.labels(MODEL).observe(time.perf_counter() - started)
        return Embedded(vectors, engine.identity)

    async def _loaded(self) -> EmbeddingEngine:
        if self._engine is None:
            async with self._loading:
                if self._engine is None:
                    self._engine = await self._load()
        return self._engine

    async def _load(self) -> EmbeddingEngine:
        loop = asyncio.get_running_loop()
        try:
            engine = await loop.run_in_executor(self._threads, load_engine, self._settings)
        except (WeightsError, EngineError) as error:
            log.exception("the embedding engine can't be loaded")
            self._problem = problem_of(error)
            raise Unavailable(f"Embeddings are not available: {self._problem}") from None
        self._problem = None
        return engine

    async def problem(self) -> str | None:
        """Why there can be no embeddings now, as far as that is known without loading the engine."""
        if self._engine is None and self._problem is None:
            try:
                await asyncio.to_thread(locate_weights, self._settings.weights)
            except WeightsError as error:
                return problem_of(error)
        return self._problem

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


def problem_of(error: Exception) -> str:
    """What the public may read of an error; its own text names folders."""
    if isinstance(error, WeightsError):
        return "the model files are missing or damaged; the server's log says which and what to do"
    return "no embedding engine runs on this machine; the server's log says why"
