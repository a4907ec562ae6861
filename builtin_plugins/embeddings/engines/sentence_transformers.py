"""The reference engine: the published library with the published files, by which others are verified."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from builtin_plugins.embeddings.engines.base import DeclaredWrongly, Precision, Vectors, identity, normalized

_BATCH = 32


class ModelFiles(Protocol):
    """A folder in sentence-transformers' format; see `Network` for the names."""

    @property
    def folder(self) -> Path: ...

    @property
    def model(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...


class SentenceTransformersEngine:
    """A model in torch. Calls run one at a time, as the library doesn't promise thread safety."""

    def __init__(
        self, weights: ModelFiles, *, precision: Precision = "fp32", max_tokens: int | None = None
    ) -> None:
        """Load the model; the first engine in a process pays for importing torch (seconds, some 500 MB).

        `max_tokens` is the maximum that it reads of a text; if None, the folder's setting applies.

        Raises:
            DeclaredWrongly: it can't read so many.
        """
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # no progress bar in a server's log
        kind = torch.bfloat16 if precision == "bf16" else torch.float32
        self._model = SentenceTransformer(
            str(weights.folder),
            device="cpu",
            local_files_only=True,
            model_kwargs={"dtype": kind, "use_safetensors": True},  # a pickle would execute its contents
        )
        self._read_at_most(max_tokens)
        self._identity = identity("sentence-transformers", weights.model, precision, weights.fingerprint)
        self._dimension = int(self._model.encode([""], convert_to_numpy=True).shape[1])
        self._turn = threading.Lock()

    def _read_at_most(self, tokens: int | None) -> None:
        if tokens is None:
            return
        most = self._model.max_seq_length
        if most is not None and tokens > most:
            raise DeclaredWrongly(f"'max_tokens' is {tokens}, but the model reads {most} tokens: lower it")
        self._model.max_seq_length = tokens

    @property
    def identity(self) -> str:
        return self._identity

    @property
    def dimension(self) -> int:
        return self._dimension

    def encode(self, texts: Sequence[str]) -> Vectors:
        """See `EmbeddingEngine.encode`."""
        if not texts:
            return np.empty((0, self._dimension), np.float32)
        with self._turn:
            vectors = self._model.encode(
                list(texts),
                batch_size=_BATCH,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
        return normalized(np.asarray(vectors, np.float32))  # in bf16, the library's is a thousandth off
