"""Networks on OpenVINO's CPU runtime: no torch in memory, and the processor's fastest arithmetic."""

from __future__ import annotations

import os
import queue
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from builtin_plugins.embeddings.engines.arithmetic import chosen
from builtin_plugins.embeddings.engines.base import (
    Ids,
    ModelNetwork,
    PrecisionSetting,
    Vectors,
    identity,
    normalized,
)
from builtin_plugins.embeddings.engines.openvino_runtime import runtime
from builtin_plugins.embeddings.engines.verification import verify

_WINDOW = 1024  # texts tokenized and sorted at once: bounds memory for a caller that hands over a whole book
# Tokens per run. Larger batches are not faster on a CPU, take more memory, and delay others.
_BATCH_TOKENS = 512
# Kernels that a stream keeps, about five for each batch shape. With the runtime's own limit of 5,000, a
# process's memory would grow as long as new shapes come.
_KERNELS = 200


class _Running(NamedTuple):
    """A batch that is being computed."""

    rows: list[int]
    request: Any
    inputs: Any  # the runtime uses this memory without keeping it alive


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
    ) -> None:
        """Compile the network and check it against the reference vectors (about half a second).

        Args:
            precision: `auto` takes the fastest that the processor supports (`arithmetic`).
            threads: processor threads in all; None takes every core.
            batches: how many batches of 512 tokens are computed side by side, each with its share of the
                threads. Two threads on one batch wait for each other at every layer: one batch at a time
                answers a question sooner, several take less processor time for many passages.

        Raises:
            EngineError: int8 or bf16 is configured on a processor without it, or the vectors are not the
                reference's.
        """
        core = runtime().Core()
        arithmetic = chosen(precision, core, takes_int8=network.takes_int8)
        self._network = network
        self._identity = identity("openvino", network.model, arithmetic.name, network.fingerprint)
        self._batches = max(1, min(batches, threads or _cores()))
        options = {**arithmetic.options, **_options(threads, self._batches)}
        self._compiled = core.compile_model(network.graph(int8=arithmetic.int8), "CPU", options)
        self._idle: queue.SimpleQueue[Any] = queue.SimpleQueue()
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
        tokens = self._network.tokens(texts)
        means = np.empty((len(texts), self.dimension), np.float32)
        running: deque[_Running] = deque()
        try:
            for rows in _batches([len(ids) for ids in tokens]):
                if len(running) == self._batches:
                    self._finish(running.popleft(), means)
                running.append(self._start(rows, [tokens[row] for row in rows]))
            while running:
                self._finish(running.popleft(), means)
        finally:
            for left in running:  # after an error: the runtime still reads their memory
                with suppress(RuntimeError):
                    left.request.wait()
        return normalized(means)

    def _start(self, rows: list[int], tokens: list[Ids]) -> _Running:
        started = _Running(rows, self._borrow(), self._network.inputs(tokens))
        for place, table in enumerate(started.inputs):  # passing a list would take twice as long
            started.request.set_input_tensor(place, runtime().Tensor(table, shared_memory=True))
        started.request.start_async()
        return started

    def _finish(self, running: _Running, means: Vectors) -> None:
        try:
            running.request.wait()
            means[running.rows] = running.request.get_output_tensor(0).data
        finally:
            self._idle.put(running.request)

    def _borrow(self) -> Any:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return self._compiled.create_infer_request()


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
