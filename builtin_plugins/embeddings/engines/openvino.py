"""all-MiniLM-L6-v2 on OpenVINO's CPU runtime: no torch in memory, bf16 where the processor has it."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from builtin_plugins.embeddings.engines.base import (
    MAX_TOKENS,
    BertShape,
    EngineError,
    Precision,
    Vectors,
    identity,
    normalised,
)
from builtin_plugins.embeddings.engines.bert_graph import build
from builtin_plugins.embeddings.engines.openvino_runtime import runtime
from builtin_plugins.embeddings.engines.verification import verify
from builtin_plugins.embeddings.weights import Weights

_WINDOW = 1024  # texts tokenized and sorted at once: bounds memory for a caller that hands over a whole book
# Tokens per run, padding included: larger batches are not faster on a processor, and keep others waiting.
_BATCH_TOKENS = 2048

Ids = list[int]


class OpenVinoEngine:
    """One compiled model; each concurrent `encode` borrows an inference request of its own.

    The requests share one stream of the runtime, which serves them in the order of arrival: a question waits
    for one batch of a running ingestion, not for all of them.
    """

    def __init__(
        self, weights: Weights, *, precision: Precision | Literal["auto"] = "auto", threads: int | None = None
    ) -> None:
        """Compile the model and check it against the reference vectors (about 0.4 s).

        Args:
            precision: `auto` takes bf16 where the processor computes in it, else fp32.
            threads: processor threads for one run; None leaves it to the runtime, which takes every core.

        Raises:
            EngineError: bf16 was asked for on a processor without it, or the vectors are not the reference's.
        """
        core = runtime().Core()
        self._precision = _chosen(precision, core)
        shape = BertShape.read(weights.config)
        self._dimension = shape.hidden
        self._identity = identity("openvino", weights.model, self._precision, weights.fingerprint)
        self._tokenizer = _tokenizer(weights)
        self._compiled = core.compile_model(
            build(weights.tensors, shape), "CPU", _options(self._precision, threads)
        )
        self._idle: queue.SimpleQueue[Any] = queue.SimpleQueue()
        verify(self)

    @property
    def identity(self) -> str:
        return self._identity

    @property
    def dimension(self) -> int:
        return self._dimension

    def encode(self, texts: Sequence[str]) -> Vectors:
        """See `EmbeddingEngine.encode`."""
        vectors = np.empty((len(texts), self._dimension), np.float32)
        for start in range(0, len(texts), _WINDOW):
            window = list(texts[start : start + _WINDOW])
            vectors[start : start + len(window)] = self._encode_window(window)
        return vectors

    def _encode_window(self, texts: list[str]) -> Vectors:
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch_fast(texts)]
        means = np.empty((len(texts), self._dimension), np.float32)
        for rows in _batches([len(ids) for ids in tokens]):
            means[rows] = self._run([tokens[row] for row in rows])
        return normalised(means)

    def _run(self, tokens: list[Ids]) -> Vectors:
        request = self._borrow()
        try:
            result: Vectors = request.infer(_padded(tokens), share_inputs=True)[0]
        finally:
            self._idle.put(request)
        return result

    def _borrow(self) -> Any:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return self._compiled.create_infer_request()


def supports_bf16() -> bool:
    """Whether this processor computes in bf16, as OpenVINO sees it."""
    return _has_bf16(runtime().Core())


def _has_bf16(core: Any) -> bool:
    return "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")


def _chosen(precision: Precision | Literal["auto"], core: Any) -> Precision:
    if precision == "auto":
        return "bf16" if _has_bf16(core) else "fp32"
    if precision == "bf16" and not _has_bf16(core):
        # The runtime would compute in fp32 without a word, and the vectors would bear a false identity.
        raise EngineError("this processor does not compute in bf16: choose the precision auto or fp32")
    return precision


def _options(precision: Precision, threads: int | None) -> dict[str, Any]:
    options: dict[str, Any] = {
        "INFERENCE_PRECISION_HINT": "bf16" if precision == "bf16" else "f32",
        "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": 1,
        "ENABLE_CPU_PINNING": False,  # pinned threads would fight with the other processes for the same cores
    }
    if threads is not None:
        options["INFERENCE_NUM_THREADS"] = threads
    return options


def _tokenizer(weights: Weights) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(weights.tokenizer))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Row numbers, longest first, in groups whose padded size stays within `_BATCH_TOKENS`."""
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    start = 0
    while start < len(order):
        size = max(1, _BATCH_TOKENS // lengths[order[start]])
        yield order[start : start + size]
        start += size


def _padded(tokens: list[Ids]) -> list[npt.NDArray[Any]]:
    """Token ids int32 and mask float32, both [texts, longest]."""
    longest = max(len(ids) for ids in tokens)
    padded = np.zeros((len(tokens), longest), np.int32)
    mask = np.zeros((len(tokens), longest), np.float32)
    for row, ids in enumerate(tokens):
        padded[row, : len(ids)] = ids
        mask[row, : len(ids)] = 1
    return [padded, mask]
