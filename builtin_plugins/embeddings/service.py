"""The engines of this process: each is loaded with its first text and runs outside the event loop."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from builtin_plugins.embeddings.batching import Gathered, are_few
from builtin_plugins.embeddings.catalog import LocalModel, find_model, is_left_out
from builtin_plugins.embeddings.engines.base import DeclaredWrongly, EmbeddingEngine, EngineError, Vectors
from builtin_plugins.embeddings.settings import EmbeddingsSettings
from builtin_plugins.embeddings.spans import embedding_span
from builtin_plugins.embeddings.weights import WeightsError
from builtin_plugins.inference import api as inference
from builtin_plugins.inference.api import Embedded
from kernel.sdk import Platform, Unavailable

if TYPE_CHECKING:
    from prometheus_client import Histogram

log = logging.getLogger("platform.embeddings")

_NICER = 5
_HALVES = re.compile(r"[\ud800-\udfff]")  # of characters, which no tokenizer accepts


class LocalEmbeddings:
    """The models on this machine."""

    def __init__(
        self,
        platform: Platform,
        models: Sequence[LocalModel],
        settings: EmbeddingsSettings,
        durations: Histogram,
    ) -> None:
        self._platform = platform
        self._models = models
        self._settings = _for_role(settings, platform.role)
        self._durations = durations
        # Five at a time: a large document and the line of small ones run two batches each, and questions in
        # the same process need not wait for them.
        self._threads = ThreadPoolExecutor(5, "platform-embed", initializer=_yield_to_others)
        self._preloading: asyncio.Task[None] | None = None
        home = platform.settings.home
        self._engines = {model.name: _Engine(model, self._settings, home, self._threads) for model in models}

    async def embed(self, model: str, texts: Sequence[str], purpose: inference.Purpose) -> Embedded | None:
        """Vectors of `texts`; None for an unknown model.

        Raises Unavailable without an engine, and what `check_model_call` raises.
        """
        local_model = find_model(model, self._models)
        if local_model is None:
            return None
        hooks, platform = self._platform.hooks, self._platform
        await hooks.ask(inference.check_model_call, platform=platform, model=local_model.name)
        engine = self._engines[local_model.name]
        identity = (await engine.loaded()).identity
        prefix = local_model.prefixes[purpose]
        whole = [prefix + _HALVES.sub("\ufffd", text) for text in texts]
        started, failed = time.perf_counter(), True
        try:
            with embedding_span(platform, local_model.name, "platform"):
                vectors = await engine.encode(whole, purpose)
            failed = False
        finally:
            seconds = time.perf_counter() - started
            await hooks.tell(
                inference.on_model_called,
                platform=platform,
                model=local_model.name,
                seconds=seconds,
                failed=failed,
            )
        self._durations.labels(local_model.name).observe(seconds)
        return local_model.embedded(vectors, identity)

    async def preload(self, seconds: float) -> None:
        """Load the models named in the settings. Slow ones continue in the background; errors are logged."""
        loading = asyncio.create_task(self._preload(), name="preloading embedding models")
        self._preloading = loading
        await asyncio.wait({loading}, timeout=seconds)

    async def _preload(self) -> None:
        for name in self._settings.preloaded:
            local_model = find_model(name, self._models)
            with suppress(Unavailable):
                if local_model is not None:
                    await self._engines[local_model.name].loaded()

    async def problem(self) -> str | None:
        """Why a model can't be used now, as far as known without loading it; None if all can."""
        here = [model.name for model in self._models if not is_left_out(model, self._settings)]
        problems = [await self._engines[name].problem() for name in here]
        return next((problem for problem in problems if problem is not None), None)

    def close(self) -> None:
        """Release the threads."""
        if self._preloading is not None:
            self._preloading.cancel()
        for engine in self._engines.values():
            engine.close()
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Engine:
    """A model's engine, loaded on first use."""

    def __init__(
        self, model: LocalModel, settings: EmbeddingsSettings, home: Path, threads: ThreadPoolExecutor
    ) -> None:
        self._model = model
        self._settings = settings
        self._home = home
        self._threads = threads
        self._loading: asyncio.Task[EmbeddingEngine] | None = None
        self._engine: EmbeddingEngine | None = None
        self._gathered: Gathered | None = None
        self._problem: str | None = None

    async def encode(self, texts: list[str], purpose: inference.Purpose) -> Vectors:
        """One vector for each text; a few short texts at the same time are computed together.

        If batches run in parallel, as in a worker, passages don't wait for each other.

        Raises Unavailable.
        """
        engine = await self.loaded()
        may_wait = purpose == "query" or self._settings.batches in (None, 1)
        if may_wait and self._gathered is not None and are_few(texts):
            return await self._gathered.encode(texts)
        return await asyncio.get_running_loop().run_in_executor(self._threads, engine.encode, texts)

    async def loaded(self) -> EmbeddingEngine:
        """The engine, loaded for the first caller, even if that one leaves meanwhile. Raises Unavailable."""
        if self._engine is not None:
            return self._engine
        if self._loading is None:
            self._loading = asyncio.create_task(self._load(), name=f"loading {self._model.name}")
            self._loading.add_done_callback(self._keep)
        return await asyncio.shield(self._loading)

    def _keep(self, loading: asyncio.Task[EmbeddingEngine]) -> None:
        self._loading = None
        if not loading.cancelled() and loading.exception() is None:
            self._engine = loading.result()
            self._gathered = Gathered(self._engine.encode, self._threads)

    def close(self) -> None:
        """Stop waiting for an engine that is being loaded, and for texts."""
        if self._loading is not None:
            self._loading.cancel()
        if self._gathered is not None:
            self._gathered.close()

    async def _load(self) -> EmbeddingEngine:
        loop = asyncio.get_running_loop()
        try:
            engine = await loop.run_in_executor(
                self._threads, load_engine, self._model, self._settings, self._home
            )
        except (WeightsError, EngineError) as error:
            log.exception("the engine of %s can't be loaded", self._model.name)
            self._problem = _problem_of(self._model, self._settings, error)
            raise Unavailable(f"Embeddings are not available: {self._problem}") from None
        self._problem = None
        return engine

    async def problem(self) -> str | None:
        """Why there can be no vectors now, as far as known without loading the engine."""
        if self._engine is None and self._problem is None:
            try:
                await asyncio.to_thread(self._model.locate, self._settings)
            except WeightsError as error:
                return _problem_of(self._model, self._settings, error)
        return self._problem


def _for_role(settings: EmbeddingsSettings, role: str) -> EmbeddingsSettings:
    if settings.batches is None and role == "worker":
        return settings.model_copy(update={"batches": 2})
    return settings


def _yield_to_others() -> None:
    """Lower the priority of this thread and those it starts, including the runtime's.

    Embedding keeps all cores busy for milliseconds; work that only passes on an answer should not wait for
    it.
    """
    with suppress(OSError):  # some systems only have priorities for processes
        os.setpriority(
            os.PRIO_PROCESS, threading.get_native_id(), os.getpriority(os.PRIO_PROCESS, 0) + _NICER
        )


def load_engine(model: LocalModel, settings: EmbeddingsSettings, home: Path | None = None) -> EmbeddingEngine:
    """The configured engine, verified against the reference vectors.

    Raises WeightsError if the model files are missing or damaged, EngineError if no engine runs here.
    """
    started = time.monotonic()
    engine = model.load(settings, home)
    log.info("embedding engine %s ready after %.2f s", engine.identity, time.monotonic() - started)
    return engine


def _problem_of(model: LocalModel, settings: EmbeddingsSettings, error: Exception) -> str:
    """The public text of an error; its own text names folders."""
    if is_left_out(model, settings):
        return f"{model.name} is not installed on this server, whose log says how to add it"
    if isinstance(error, WeightsError):
        return f"the model files of {model.name} are missing or damaged; the server's log says what to do"
    if isinstance(error, DeclaredWrongly):
        return str(error)
    return f"no engine on this machine runs {model.name}; the server's log says why"
