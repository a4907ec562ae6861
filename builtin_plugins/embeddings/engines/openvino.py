"""Networks on OpenVINO's CPU runtime: no torch in memory, and the processor's fastest arithmetic."""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from builtin_plugins.embeddings.engines.arithmetic import chosen
from builtin_plugins.embeddings.engines.base import (
    EngineError,
    Ids,
    ModelNetwork,
    PrecisionSetting,
    Vectors,
    identity,
    normalized,
)
from builtin_plugins.embeddings.engines.openvino_runtime import runtime
from builtin_plugins.embeddings.engines.verification import verify

log = logging.getLogger("platform.embeddings")

_WINDOW = 1024  # texts tokenized and sorted at once: bounds memory for a caller that hands over a whole book
# Tokens per run. Larger batches are not faster on a CPU, take more memory, and delay others.
_BATCH_TOKENS = 512
# Kernels that a stream keeps, about five for each batch shape. With the runtime's own limit of 5,000, a
# process's memory would grow as long as new shapes come.
_KERNELS = 200
_CALLERS = 5
"""Callers at a time whose requests are made in advance, for a fifth of a millisecond each: as many as
`LocalEmbeddings` has threads. A further one waits for a running batch."""
_LOOKS = 20
"""How often a waiting caller looks for other batches that have ended. A machine that was suspended meanwhile
loses one of them."""


class _Running(NamedTuple):
    """A batch that is being computed."""

    rows: list[int]
    request: Any
    inputs: Any  # the runtime uses this memory without keeping it alive


class _Stuck(EngineError):
    """The runtime's threads end no batch any more."""


class _Compiled:
    """A compiled network with the requests that nobody uses, and the number of batches that have ended."""

    def __init__(self, network: Any, requests: int) -> None:
        self._network = network
        self._requests = requests
        self._idle: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._ended = 0
        for _ in range(requests):  # while a batch runs, the runtime makes none
            self.give_back(network.create_infer_request())

    def borrow(self) -> Any:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return self._network.create_infer_request()

    def give_back(self, request: Any) -> None:
        self._idle.put(request)

    def wait(self, request: Any, patience: float) -> None:
        """Wait for the end of the request's batch. Raises _Stuck if it isn't getting any nearer.

        That is so after `patience` seconds in which no batch has ended that may have been ahead of it.
        """
        first = ended = self._ended
        looks = 0
        while not request.wait_for(round(1000 * patience / _LOOKS)):
            is_nearer = ended < self._ended <= first + self._requests
            ended, looks = self._ended, 0 if is_nearer else looks + 1
            if looks == _LOOKS:
                raise _Stuck(f"no batch has ended for {patience:g} s")
        self._ended += 1


class OpenVinoEngine:
    """One compiled network; each running batch borrows its own inference request.

    The requests share the runtime's streams, first come, first served: a question waits for one batch of a
    running ingestion, not for all of them.
    """

    def __init__(
        self,
        network: ModelNetwork,
        *,
        precision: PrecisionSetting = "auto",
        threads: int | None = None,
        batches: int = 1,
        patience: float = 60.0,
    ) -> None:
        """Compile the network and check it against the reference vectors (about half a second).

        Args:
            precision: `auto` takes the fastest that the processor supports (`arithmetic`).
            threads: processor threads in all; None takes every core.
            batches: how many batches of 512 tokens are computed side by side, each with its share of the
                threads. Two threads on one batch wait for each other at every layer: one batch at a time
                answers a question sooner, several take less processor time for many passages.
            patience: seconds without the end of a batch, which takes less than one, after which the runtime
                counts as stuck, and the network is compiled again.

        Raises:
            EngineError: int8 or bf16 is configured on a processor without it, or the vectors are not the
                reference's.
        """
        core = runtime().Core()
        arithmetic = chosen(precision, core, takes_int8=network.takes_int8)
        self._network = network
        self._identity = identity("openvino", network.model, arithmetic.name, network.fingerprint)
        self._batches = max(1, min(batches, threads or _cores()))
        self._patience = patience
        self._core, self._int8 = core, arithmetic.int8
        self._settings = {**arithmetic.options, **_options(threads, self._batches)}
        self._compiling = threading.Lock()
        self._compiled = self._compile()
        verify(self, network.reference)
        network.forget()  # the runtime has copied them to its own form

    @property
    def identity(self) -> str:
        return self._identity

    @property
    def dimension(self) -> int:
        return self._network.dimension

    def encode(self, texts: Sequence[str]) -> Vectors:
        """See `EmbeddingEngine.encode`."""
        vectors = np.empty((len(texts), self.dimension), np.float32)
        for start in range(0, len(texts), _WINDOW):
            window = list(texts[start : start + _WINDOW])
            vectors[start : start + len(window)] = self._encode_window(window)
        return vectors

    def _encode_window(self, texts: list[str]) -> Vectors:
        """Raises EngineError if the runtime gets stuck twice."""
        tokens = self._network.tokens(texts)
        compiled = self._compiled
        try:
            return normalized(self._means(compiled, tokens))
        except _Stuck as error:
            log.error("%s is stuck (%s): its network is compiled again", self._identity, error)
        with self._compiling:
            if self._compiled is compiled:
                self._compiled = self._compile()
                self._network.forget()
        return normalized(self._means(self._compiled, tokens))

    def _means(self, compiled: _Compiled, tokens: list[Ids]) -> Vectors:
        means = np.empty((len(tokens), self.dimension), np.float32)
        running: deque[_Running] = deque()
        try:
            for rows in _batches([len(ids) for ids in tokens]):
                if len(running) == self._batches:
                    self._finish(compiled, running, means)
                running.append(self._start(compiled, rows, [tokens[row] for row in rows]))
            while running:
                self._finish(compiled, running, means)
        finally:
            for left in running:
                _keep_until_ended(left)
        return means

    def _start(self, compiled: _Compiled, rows: list[int], tokens: list[Ids]) -> _Running:
        started = _Running(rows, compiled.borrow(), self._network.inputs(tokens))
        for place, table in enumerate(started.inputs):  # passing a list would take twice as long
            started.request.set_input_tensor(place, runtime().Tensor(table, shared_memory=True))
        started.request.start_async()
        return started

    def _finish(self, compiled: _Compiled, running: deque[_Running], means: Vectors) -> None:
        first = running[0]
        compiled.wait(first.request, self._patience)
        running.popleft()
        means[first.rows] = first.request.get_output_tensor(0).data
        compiled.give_back(first.request)

    def _compile(self) -> _Compiled:
        graph = self._network.graph(int8=self._int8)
        network = self._core.compile_model(graph, "CPU", self._settings)
        return _Compiled(network, _CALLERS * self._batches)


def _keep_until_ended(running: _Running) -> None:
    """Let a thread hold on to a batch after an error: the runtime reads its memory, and whoever freed the
    network of one that never ends would wait for it. The thread doesn't hold up the end of the process.
    """

    def wait() -> None:
        with suppress(RuntimeError):
            running.request.wait()

    threading.Thread(target=wait, name="platform-embed-left", daemon=True).start()


def _options(threads: int | None, streams: int) -> dict[str, Any]:
    options: dict[str, Any] = {
        "PERFORMANCE_HINT": "LATENCY" if streams == 1 else "THROUGHPUT",
        "NUM_STREAMS": streams,
        "CPU_RUNTIME_CACHE_CAPACITY": _KERNELS,  # undocumented, so a test names it and the release is pinned
        "ENABLE_CPU_PINNING": False,  # pinned threads would compete with other processes for the same cores
    }
    if threads is not None or streams > 1:  # with several streams, the runtime would not use every core
        options["INFERENCE_NUM_THREADS"] = threads or _cores()
    return options


def _cores() -> int:
    """The cores that this process may use, if the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Row numbers, longest first, in groups of at most `_BATCH_TOKENS`; a longer text is alone."""
    batch: list[int] = []
    tokens = 0
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        if batch and tokens + lengths[row] > _BATCH_TOKENS:
            yield batch
            batch, tokens = [], 0
        batch.append(row)
        tokens += lengths[row]
    if batch:
        yield batch
